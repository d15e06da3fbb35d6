export async function up(queryInterface) {
  await queryInterface.sequelize.query('CREATE EXTENSION IF NOT EXISTS snowflake')
  await queryInterface.sequelize.query('CREATE EXTENSION IF NOT EXISTS snowflake_convert')
  await queryInterface.sequelize.query(`SELECT snowflake_convert('customer', generator => 'snowflake_nextval()')`)
}
