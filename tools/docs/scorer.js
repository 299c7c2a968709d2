// SPDX-License-Identifier: Apache-2.0
// How the search of the site ranks what it finds. The reference comes before the guides, and in it first the header
// that has a part of the name that is looked for (wait.hpp for wait_any). The decisions come last. Sphinx reads this
// object in place of its own.
var Scorer = {
  score: ([docname, , , , score]) => {
    const wanted = new URLSearchParams(window.location.search).get("q") || "";
    const header = docname.match(/^(?:include|c|win32)\/.*?(\w+)\.hp?p?$/);
    if (header) return score + (wanted.includes(header[1]) ? 150 : 100);
    if (docname.startsWith("docs/decisions/") || docname === "CHANGELOG") return score - 100;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
