export async function insert(client, name) {
  const { rows } = await client.query('INSERT INTO invoice (name) VALUES ($1) RETURNING id', [name])
  return rows[0].id // a string
}
