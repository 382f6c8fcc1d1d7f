// What a plugin costs in JavaScript: the same work as policies/plugins/yardstick.

import { definePlugin, Verdict } from "../../../../dlp-sdk/js/weir.js";

const WORK = {
  nothing: () => Verdict.pass(),

  read(message) {
    const found = message.leaves.some((leaf) => leaf.text.includes("\x7f"));
    return found ? Verdict.warn("a delete character") : Verdict.pass();
  },

  scan(message, host) {
    let longest = "";
    for (const leaf of message.leaves) if (leaf.text.length > longest.length) longest = leaf.text;
    return host.scan(longest).length > 0 ? Verdict.warn("the rules find something") : Verdict.pass();
  },

  edit(message) {
    const last = message.leaves.findLast((leaf) => leaf.kind === "text");
    return last ? Verdict.pass().replace(last, "[edited]") : Verdict.pass();
  },
};

export const policy = definePlugin({
  name: "yardstick-js",
  version: "0.1.0",
  summary: "Does nothing, reads every leaf, scans or edits one: what a plugin costs in JavaScript",
  configSchema: { type: "object", properties: { work: { enum: Object.keys(WORK) } }, additionalProperties: false },
  create({ work = "nothing" }) {
    if (!Object.hasOwn(WORK, work)) throw new Error(`work: use one of ${Object.keys(WORK).join(", ")}`);
    return WORK[work];
  },
  evaluate: (work, message, host) => work(message, host),
});
