// What monitoring/dashboard.json must be, by the types that Grafana publishes.
// script/tests/dashboard appends the dashboard and its panels, as constants of
// these types, and has the compiler check them.

import type { Dashboard, FieldConfig, Panel, VariableModel }
  from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type { FieldConfig as TimeSeriesField, Options as TimeSeriesOptions }
  from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';
import type { Options as StatOptions }
  from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';

// The same in JSON: the values of an enum are plain strings and numbers.
type Json<T> =
  T extends string ? `${T}` :
  T extends number ? number :
  T extends (infer Item)[] ? Json<Item>[] :
  T extends object ? { [Key in keyof T]: Json<T[Key]> } :
  T;

type Options = { timeseries: Json<TimeSeriesOptions>, stat: Json<StatOptions> };
type Fields = { timeseries: Json<TimeSeriesField>, stat: undefined };
