// A client program for pgtrial: single rows by node-postgres. The server is that of PGHOST, PGUSER and the like.
const readline = require("node:readline");
const { Client } = require("pg");

const OPERATIONS = 500;
const QUERY = { name: "one", text: "SELECT abalance FROM pgbench_accounts WHERE aid = $1" };
const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");

async function main() {
  write({ program: "node-postgres", version: require("pg/package.json").version });
  const client = new Client();
  await client.connect();
  for await (const token of readline.createInterface({ input: process.stdin })) { // "go 1"
    const begin = performance.now();
    for (let i = 0; i < OPERATIONS; i++) {
      await client.query({ ...QUERY, values: [1 + Math.floor(Math.random() * 100000)] });
    }
    write({ batch: Number(token.split(" ")[1]), ms: performance.now() - begin, operations: OPERATIONS });
  }
  await client.end();
}

main().catch((error) => { console.error(error); process.exit(1); });
