// Answers requests, one JSON object a line: {"reader": "ai_sdk", ...} is handled by ai_sdk.mjs.
import { createInterface } from "node:readline";

const readers = {};
const answer = async ({ reader, ...request }) => {
  readers[reader] ??= await import(`./${reader}.mjs`);
  return readers[reader].handle(request);
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const answered = await answer(JSON.parse(line)).catch((error) => ({ broken: String(error.stack) }));
  process.stdout.write(JSON.stringify(answered) + "\n");
}
