// One conversation through LangGraph JS and its SQLite saver: a graph of one
// node that answers, a thread, an invocation a turn, as its guide has it.
//
//   node conversation.mjs FILE BYTES TURN...
//
// prints a line of JSON for each TURN: the median milliseconds of the ten turns
// up to it, and the bytes of the database once its log is folded in.
import { statSync } from "node:fs";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const [file, bytes, ...stops] = process.argv.slice(2);
const marks = stops.map(Number);

// text differs from message to message, so that nothing can be kept once.
const text = (n) => `${n} `.padEnd(Number(bytes), "weir ");

const saver = SqliteSaver.fromConnString(file);
const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", (s) => ({ messages: [new AIMessage(text(s.messages.length))] }))
  .addEdge("__start__", "answer")
  .compile({ checkpointer: saver });

const size = () => {
  saver.db.pragma("wal_checkpoint(TRUNCATE)");
  return statSync(file).size;
};

const config = { configurable: { thread_id: "1" } };
const times = [];
for (let turn = 1; turn <= Math.max(...marks); turn++) {
  const begin = performance.now();
  await graph.invoke({ messages: [new HumanMessage(text(2 * turn))] }, config);
  times.push(performance.now() - begin);
  if (marks.includes(turn)) {
    const last = times.slice(-10).sort((a, b) => a - b);
    console.log(JSON.stringify({ turn, ms: last[Math.floor(last.length / 2)], bytes: size() }));
  }
}
