// The dashboard that is named, as TypeScript after types.ts: each part is a constant of
// its own, because the compiler looks for unknown properties only there.

import { readFileSync } from 'node:fs';

const dashboard = JSON.parse(readFileSync(process.argv[2]));
let n = 0;

function constant(type, value) {
  console.log(`const c${++n}: ${type} = ${JSON.stringify(value)};`);
}

for (const panel of dashboard.panels) {
  const { options, fieldConfig, ...rest } = panel;
  const { custom, ...fields } = fieldConfig.defaults;

  constant('Json<Panel>', rest);
  constant(`Options['${panel.type}']`, options);
  constant('Json<FieldConfig>', fields);
  constant(`Fields['${panel.type}']`, custom);
}
for (const variable of dashboard.templating.list)
  constant('Json<VariableModel>', variable);
constant('Json<Dashboard>', { ...dashboard, panels: [], templating: { list: [] } });
