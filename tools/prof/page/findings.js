// What limits the run, as `orrery-prof explain` says it.

class FindingsView {
  constructor(profile) {
    Object.assign(this, { profile, place: document.getElementById("findings"), made: false });
  }
  open() {
    if (this.made) return;
    this.made = true;
    const { profile } = this;
    if (profile.meta.findings.length === 0) {
      this.place.replaceChildren(element("h2", {}, "Findings"), element("p", {}, "Nothing costs a tenth of the time of any card or more."));
      return;
    }
    const several = profile.processes.length > 1;
    const groups = new Map();
    for (const finding of profile.meta.findings) {
      const process = profile.processes[finding.process];
      const title = `${finding.device < 0 ? "The process" : `Card ${finding.device}`}${several ? `, process ${processTitle(process)}` : ""}`;
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push(finding);
    }
    this.place.replaceChildren(...[...groups].flatMap(([title, findings]) =>
      [element("h2", {}, title), ...findings.map((finding) => this.finding(finding))]));
  }
  finding(finding) {
    const facts = [["seen", finding.evidence], ["bound", finding.bound], ["gap", finding.gap], ["try", finding.advice]]
      .filter(([, text]) => text !== "").map(([name, text]) => [name, named(visible(text))]);
    const share = element("span", { className: "share" }, `${(finding.share * 100).toFixed(0)} %`);
    return element("article", { className: finding.atBound ? "finding reached" : "finding" },
      element("h3", {}, share, named(visible(finding.title)), finding.atBound ? element("span", { className: "quiet" }, "  at its bound") : null),
      factsOf(facts));
  }
}
