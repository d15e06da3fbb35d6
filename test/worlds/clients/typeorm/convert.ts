import { MigrationInterface, QueryRunner } from 'typeorm'

export class Convert implements MigrationInterface {
  name = 'Convert1763740800000'

  async up(runner: QueryRunner) {
    await runner.query(`SELECT snowflake_convert('customer', generator => 'snowflake_nextval()')`)
    await runner.query(`SELECT snowflake_convert('"order"', generator => 'snowflake_nextval()')`)
  }

  async down() {}
}
