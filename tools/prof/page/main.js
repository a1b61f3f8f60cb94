// The page.

class App {
  constructor(profile) {
    this.profile = profile;
    this.canvas = document.getElementById("canvas");
    this.search = document.getElementById("search");
    this.view = new View(profile);
    this.painter = new Painter(this.canvas, this.view);
    this.details = new Details(profile, this.view, this.painter, (slice, how) => this.select(slice, how));
    const pick = (slice) => {
      this.open("timeline");
      this.select(slice, { reveal: true });
    };
    this.tables = new Tables(profile, pick);
    this.parts = { summary: new Summary(profile, pick), tables: this.tables, roofline: new RooflineView(profile, pick),
      source: new SourceView(profile), findings: new FindingsView(profile) };
    this.rangeMode = false;
    this.matchCount = 0;
    this.input = new Input(this);
    this.tab = "timeline";
    this.bind();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.painter.setTheme(dark.matches));
    this.painter.setTheme(dark.matches);
    new ResizeObserver(() => this.painter.resize()).observe(this.canvas);
    this.painter.resize();
    this.details.show();
    this.tellWhatIsMissing();
  }
  bind() {
    const on = (id, run) => document.getElementById(id).addEventListener("click", run);
    on("zoom-in", () => this.zoom(1.6));
    on("zoom-out", () => this.zoom(1 / 1.6));
    on("fit", () => this.fit());
    on("all-arrows", () => this.toggleArrows());
    on("select-range", () => this.toggleRangeMode());
    on("help-button", () => this.help());
    this.search.addEventListener("input", () => this.find(this.search.value));
    const tabs = [...document.querySelectorAll("[role=tab]")];
    for (const tab of tabs) {
      tab.addEventListener("click", () => this.open(tab.id.slice(4)));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        const shown = tabs.filter((one) => !one.hidden);
        const next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
        this.open(next.id.slice(4));
        next.focus();
      });
    }
  }
  tellWhatIsMissing() {
    const { meta, processes } = this.profile;
    const tell = [];
    if (meta.hidden > 0) tell.push(`${grouped(meta.hidden)} slices lie under too many others and are not shown.`);
    if (processes.some((process) => process.lost > 0 || process.lostWork.length > 0 || process.lostSamples.length > 0 || process.cutAt)) tell.push("Some of what happened is not in the profile; the summary says what.");
    const notice = document.getElementById("notice");
    notice.textContent = tell.join(" ");
    notice.hidden = tell.length === 0;
  }

  open(tab) {
    this.tab = tab;
    for (const button of document.querySelectorAll("[role=tab]")) {
      const own = button.id === `tab-${tab}`;
      button.setAttribute("aria-selected", String(own));
      button.tabIndex = own ? 0 : -1;
      document.getElementById(button.id.slice(4)).hidden = !own;
    }
    this.parts[tab]?.open();
    if (tab === "timeline") this.painter.resize();
  }
  changed() { this.painter.invalidate(); }
  help() { document.getElementById("help").showModal(); }

  hover(slice) {
    if (slice === this.view.hovered) return;
    this.view.hovered = slice;
    this.canvas.title = slice < 0 ? "" : short(this.profile.texts[this.profile.name[slice]], 200);
    this.changed();
  }
  // {reveal: it is brought into sight, zoom: and fills it}
  select(slice, { reveal, zoom }) {
    const { view } = this;
    view.selected = slice;
    if (slice < 0) view.range = null;
    else {
      view.active = view.paneOf(slice);
      if (reveal || zoom) view.reveal(slice, zoom);
    }
    this.details.show();
    this.changed();
  }
  // The next one from the selection, or from the middle of the pane if nothing is selected.
  selectNear(next) {
    const { view } = this;
    if (view.selected >= 0) return this.select(next(view.selected), { reveal: true });
    const item = view.active.items.find((one) => one.type === "row");
    if (!item) return;
    const { first, count } = item.row;
    const found = firstAbove(this.profile.begin, first, first + count, view.active.begin, true);
    this.select(Math.min(found, first + count - 1), { reveal: true });
  }
  zoomToSelection() {
    const { view } = this;
    if (view.selected >= 0) this.select(view.selected, { zoom: true });
    else if (view.range) {
      view.range.pane.show(view.range.begin, view.range.end - view.range.begin);
      this.changed();
    }
  }
  toCall() {
    const { view, profile, painter } = this;
    if (view.selected < 0) return;
    const to = view.selected >= profile.firstWork ? painter.arrows.callOf(view.selected) : painter.arrows.worksOf(view.selected)[0];
    if (to >= 0) this.select(to, { reveal: true });
  }
  zoom(factor) {
    const pane = this.view.active;
    const selected = this.view.selected;
    let at = pane.begin + pane.span / 2;
    if (selected >= 0 && this.view.paneOf(selected) === pane) {
      const middle = (this.profile.begin[selected] + this.profile.end[selected]) / 2;
      if (middle > pane.begin && middle < pane.begin + pane.span) at = middle;
    }
    pane.zoom(factor, at);
    this.changed();
  }
  fit() {
    this.view.fit();
    this.changed();
  }
  fold(key) {
    const { folded } = this.view;
    if (!folded.delete(key)) folded.add(key);
    this.view.layOut();
    this.changed();
  }
  setPressed(id, value) { document.getElementById(id).setAttribute("aria-pressed", String(value)); }
  toggleArrows() {
    this.view.allArrows = !this.view.allArrows;
    this.setPressed("all-arrows", this.view.allArrows);
    this.changed();
  }
  toggleRangeMode() {
    this.rangeMode = !this.rangeMode;
    this.setPressed("select-range", this.rangeMode);
  }
  setRange(pane, begin, end) {
    this.view.range = { pane, begin, end };
    this.view.selected = -1;
  }
  endRange() {
    if (this.rangeMode) this.toggleRangeMode();
    this.details.show();
    this.changed();
  }
  escape() {
    if (this.search.value !== "") {
      this.search.value = "";
      this.find("");
    }
    this.select(-1, {});
    if (this.rangeMode) this.toggleRangeMode();
    this.canvas.focus();
  }

  // Names with this text: others fade, tables have only these.
  find(text) {
    const { profile, view } = this;
    const wanted = text.trim().toLowerCase();
    view.matches = null;
    this.matchCount = 0;
    if (wanted !== "") {
      view.matches = Uint8Array.from(profile.texts, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
      view.matchSums = prefixSums(profile.size, (i) => view.matches[profile.name[i]]);
      this.matchCount = view.matchSums[profile.size];
    }
    document.getElementById("matches").textContent = wanted === "" ? "" : `${grouped(this.matchCount)} found`;
    this.tables.filter(wanted);
    this.changed();
  }
  // In the order of time, in the pane of the selection first.
  nextMatch(step) {
    const { view, profile } = this;
    if (!view.matches || this.matchCount === 0) return;
    const { begin, name } = profile;
    const before = (a, b) => begin[a] < begin[b] || (begin[a] === begin[b] && a < b);
    const panes = view.active === view.model ? [view.model, view.host] : [view.host, view.model];
    const ofPane = view.selected >= 0 ? view.paneOf(view.selected) : null;
    const best = (pane, from) => {
      let found = -1;
      for (const row of profile.rows) {
        if (row.track.onCard !== (pane === view.model)) continue;
        const last = row.first + row.count;
        let i = step > 0 ? row.first : last - 1;
        if (from >= 0) {
          i = firstAbove(begin, row.first, last, begin[from], true);
          while (i < last && !before(from, i)) i++;
          if (step < 0) do i--; while (i >= row.first && !before(i, from));
        }
        for (; i >= row.first && i < last; i += step) {
          if (!view.matches[name[i]]) continue;
          if (found < 0 || (step > 0 ? before(i, found) : before(found, i))) found = i;
          break;
        }
      }
      return found;
    };
    let next = ofPane ? best(ofPane, view.selected) : -1;
    const order = ofPane ? [ofPane === view.model ? view.host : view.model, ofPane] : panes;
    for (const pane of order) if (next < 0) next = best(pane, -1);
    this.open("timeline");
    this.select(next, { reveal: true });
  }
}

// For tests, and for who is curious: what the page shows, as plain numbers and texts.
function stateOf(app) {
  const { view, profile } = app;
  const pane = ({ begin, span, end, scroll, top, height }) => ({ begin, span, end, scroll, top, height });
  const selected = view.selected < 0 ? null : {
    slice: view.selected, name: profile.texts[profile.name[view.selected]], kind: kindNames[profile.kind[view.selected]],
    begin: profile.begin[view.selected], end: profile.end[view.selected] };
  return {
    tab: app.tab, slices: profile.size, works: profile.works, names: view.names, width: view.width, host: pane(view.host), model: pane(view.model), selected,
    range: view.range && { pane: view.range.pane.name, begin: view.range.begin, end: view.range.end,
      count: view.range.sums?.count, names: view.range.sums?.names.map((sum) => ({ ...sum, name: profile.texts[sum.name] })) },
    matches: app.matchCount, folded: [...view.folded], arrows: view.allArrows, frames: app.painter.frames,
    rows: view.panes.flatMap((one) => one.items.map((item) => ({ pane: one.name, type: item.type, label: item.label, y: item.y }))) };
}

addEventListener("DOMContentLoaded", () => {
  const take = (id) => {
    const place = document.getElementById(id), text = place.textContent;
    place.remove(); // it is large
    return text;
  };
  const profile = decodeProfile(take("meta"), take("columns"));
  const title = visible(profile.meta.title);
  document.getElementById("title").textContent = title;
  document.title = `${short(title, 100)}, a profile of orrery-prof`;
  const app = new App(profile);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    window.orreryPage = {
      readyAfter: performance.now(),
      state: () => stateOf(app),
      // The middle of a slice in the window, or null.
      place: (slice) => {
        const box = app.view.boxOf(slice), canvas = app.canvas.getBoundingClientRect();
        return box && { x: canvas.left + box.x + box.width / 2, y: canvas.top + box.y + rowHeight / 2, width: box.width };
      },
      slices: (name) => [...app.profile.name.keys()].filter((i) => app.profile.texts[app.profile.name[i]] === name),
    };
  }));
});
