"use strict";
// Sorts the tables and draws the charts. Texts come from a result file, which may come from anywhere: the document gets
// them only as textContent, and plotly, which interprets some markup in labels, only through plain().
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const phone = () => window.innerWidth < 640;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // ---- tables -----------------------------------------------------------------------------------------------------

  const sortKey = (row, column) => {
    const cell = row.cells[column];
    if (!("v" in cell.dataset)) return cell.textContent.trim().toLowerCase();
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };

  const sortBy = (table, head, column) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [sortKey(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // unknown values come last in both directions
      const order = a < b ? -1 : a > b ? 1 : 0;
      return descending ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    Array.from(heads).forEach((head, column) => {
      const button = head.querySelector("button");
      if (button) button.addEventListener("click", () => sortBy(table, head, column));
    });
  }

  // ---- texts and figures ------------------------------------------------------------------------------------------

  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const lines = (...parts) => parts.map(plain).join("<br>");

  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const time = (ns) => {
    const [scale, unit] = UNITS.find(([scale]) => ns >= scale * 0.9995) || UNITS[3];
    const value = ns / scale;
    return (value >= 1e6 ? value.toExponential(1) : Number(value.toPrecision(3)).toString()) + " " + unit;
  };
  const percent = (share) => Number((share * 100).toPrecision(3)) + "%";

  // Ticks of a logarithmic axis of times: the closest that fit, at least three.
  const STEPS = [[1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
  const timeTicks = (low, high) => {
    const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const inside = (steps, stride) => {
      const vals = [];
      for (let power = from; power <= to; power += stride) steps.forEach((step) => vals.push(step * 10 ** power));
      return vals.filter((value) => value >= low && value <= high);
    };
    const most = phone() ? 5 : 12;
    let vals = STEPS.map((steps) => inside(steps, 1)).find((some) => some.length <= most);
    for (let stride = 2; !vals; stride += 1) vals = [inside([1], stride)].find((some) => some.length <= most);
    return { tickmode: "array", tickvals: vals, ticktext: vals.map(time) };
  };

  // Distinct in light and dark, and to most eyes that see few colours (after Okabe and Ito).
  const PALETTE = () => dark.matches
    ? ["#56b4e9", "#f0a35e", "#3fc79a", "#e58fc0", "#f0e442", "#8fa8ff", "#ff8a80", "#b9d36c", "#c0a0ff", "#d8d8d8"]
    : ["#0072b2", "#d55e00", "#00845f", "#b0468b", "#9a7d00", "#4a55c8", "#c0392b", "#5f8a1c", "#7b4fc9", "#666666"];
  const PLACEMENTS = { pinned: "circle", "same-cpu": "square", free: "triangle-up" };
  const placementColor = (placement) => PALETTE()[{ pinned: 0, "same-cpu": 2, free: 1 }[placement]];

  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: phone() ? 11 : 13, color: color("--ink") },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: color("--soft"), activecolor: color("--ink") },
    hoverlabel: { bgcolor: color("--panel"), bordercolor: color("--soft"), font: { color: color("--ink"), size: 13 }, align: "left" },
    ...more,
  });
  const axis = ({ title, ...more }) => ({
    gridcolor: color("--line"), linecolor: color("--line"), zeroline: false, automargin: true,
    ...(title ? { title: { text: title, standoff: 14, font: { size: phone() ? 11 : 12, color: color("--soft") } } } : {}),
    ...more,
  });
  const CONFIG = {
    responsive: true, displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "pan2d", "zoom2d"],
  };

  const draw = (element, traces, arrangement) => {
    const wait = element.querySelector(".wait");
    if (wait) wait.remove();
    Plotly.react(element, traces, layout(arrangement), { ...CONFIG, displayModeBar: phone() ? false : "hover" });
  };

  // Layout of a chart with a line per row, the first at the top, and the legend above them.
  // On a phone the labels stand above their rows, where they leave the whole width to the marks.
  const listed = (rows, height, { title, ...xaxis }) => ({
    margin: { l: phone() ? 14 : 10, r: phone() ? 14 : 30, t: TOP, b: BOTTOM },
    hovermode: "closest",
    dragmode: phone() ? false : "zoom",
    legend: {
      orientation: "h", ...(phone() ? {} : { entrywidth: 90 }), x: 0, xanchor: "left",
      y: 1 + 24 / (height - TOP - BOTTOM), yanchor: "bottom",
    },
    xaxis: axis({ type: "log", title, ...xaxis }),
    // The same at the top: a long chart shows only one of them at a time.
    xaxis2: axis({ type: "log", ...xaxis, overlaying: "x", side: "top", matches: "x", showgrid: false }),
    yaxis: axis({
      range: [rows.length - (phone() ? 0.6 : 0.4), phone() ? -0.9 : -0.6],
      fixedrange: true, showgrid: true, gridcolor: color("--tint"), showticklabels: !phone(),
      tickvals: rows.map((_, y) => y), ticktext: rows.map((row) => plain(short(row.label, 44)) + "  "),
    }),
    annotations: phone() ? rows.map((row, y) => ({
      xref: "paper", x: 0, xanchor: "left", y, yanchor: "bottom", yshift: 4, showarrow: false,
      text: plain(short(row.label, 52)), font: { size: 11, color: color("--soft") },
    })) : [],
  });
  const [TOP, BOTTOM] = [66, 34];
  const ROW = { phone: 34, wide: 27 };
  // An axis without a trace is not drawn.
  const ON_TOP = { x: [null], y: [null], xaxis: "x2", hoverinfo: "skip", showlegend: false };

  // ---- the ladder -------------------------------------------------------------------------------------------------

  const drawLadder = (element, run) => {
    const rows = run.rows.filter((row) => row.sides.some((side) => side.p50));
    if (rows.length === 0) return element.remove();
    const all = [];
    const span = { x: [], y: [] };
    const byPlacement = new Map();
    const published = { x: [], y: [], text: [] };
    rows.forEach((row, y) => {
      const known = row.sides.filter((side) => side.p50);
      const values = known.map((side) => side.p50);
      all.push(...values);
      span.x.push(Math.min(...values), Math.max(...values), null);
      span.y.push(y, y, null);
      for (const side of known) {
        if (!byPlacement.has(side.placement)) byPlacement.set(side.placement, { x: [], y: [], up: [], down: [], text: [] });
        const points = byPlacement.get(side.placement);
        const [low, high] = side.interval || [side.p50, side.p50];
        points.x.push(side.p50);
        points.y.push(y);
        points.up.push(Math.max(0, high - side.p50));
        // A whisker must end above zero, or a logarithmic axis has no place for it.
        points.down.push(Math.min(Math.max(0, side.p50 - low), side.p50 * 0.999));
        points.text.push("<b>" + plain(row.label) + "</b>, " + plain(side.placement) + "<br>" + lines(...side.lines));
      }
      for (const [ns, source] of row.published) {
        all.push(ns);
        published.x.push(ns);
        published.y.push(y);
        published.text.push("<b>published: " + plain(time(ns)) + "</b><br>" + lines(...source.split("\n")));
      }
    });
    const traces = [{
      x: span.x, y: span.y, mode: "lines", hoverinfo: "skip", showlegend: false,
      line: { color: color("--line"), width: 5 },
    }];
    for (const placement of Object.keys(PLACEMENTS).filter((placement) => byPlacement.has(placement))) {
      const points = byPlacement.get(placement);
      const ink = placementColor(placement);
      traces.push({
        name: placement, x: points.x, y: points.y, hovertext: points.text, hoverinfo: "text", mode: "markers",
        marker: { symbol: PLACEMENTS[placement], size: 11, color: ink, line: { width: 1, color: color("--panel") } },
        error_x: { type: "data", array: points.up, arrayminus: points.down, thickness: 1.5, width: 5, color: ink },
      });
    }
    if (published.x.length > 0) {
      traces.push({
        name: "published", x: published.x, y: published.y, hovertext: published.text, hoverinfo: "text", mode: "markers",
        marker: { symbol: "diamond-open", size: 11, color: color("--ink"), line: { width: 1.6 } },
      });
    }
    const low = Math.min(...all) / 1.6;
    const high = Math.max(...all) * 1.6;
    const height = TOP + BOTTOM + 14 + rows.length * (phone() ? ROW.phone : ROW.wide);
    element.style.height = height + "px";
    draw(element, [...traces, ON_TOP], listed(rows, height, { range: [Math.log10(low), Math.log10(high)], ...timeTicks(low, high) }));
  };

  // ---- queues -----------------------------------------------------------------------------------------------------

  const KINDS = { threadtoll: ["circle", 0], peer: ["square", 1], mechanism: ["diamond", 2], "bare copy": ["triangle-up", 3] };
  const rate = (millions) => Number(millions.toPrecision(3)) + " M/s";
  const rateTicks = (low, high) => {
    const ticks = timeTicks(low, high);
    return { ...ticks, ticktext: ticks.tickvals.map(rate) };
  };

  // Queues of a section, best first: a mark for each with its interval, coloured by kind.
  const drawQueue = (element, run) => {
    const queue = run.queues[Number(element.dataset.nth)];
    if (!queue || queue.marks.length === 0) return element.remove();
    const { marks, streams, axis } = queue;
    const traces = Object.entries(KINDS).map(([kind, [symbol, ink]]) => {
      const trace = {
        name: kind, x: [], y: [], hovertext: [], hoverinfo: "text", mode: "markers",
        marker: { symbol, size: 10, color: PALETTE()[ink], line: { width: 1, color: color("--panel") } },
        error_x: { type: "data", array: [], arrayminus: [], thickness: 1.5, width: 4, color: PALETTE()[ink] },
      };
      marks.forEach(({ label, kind: of, figure, interval, lines: known }, y) => {
        if (of !== kind) return;
        const [low, high] = interval || [figure, figure];
        trace.x.push(figure);
        trace.y.push(y);
        trace.error_x.array.push(Math.max(0, high - figure));
        trace.error_x.arrayminus.push(Math.min(Math.max(0, figure - low), figure * 0.999));
        trace.hovertext.push("<b>" + plain(label) + "</b><br>" + lines(...known));
      });
      return trace;
    }).filter((trace) => trace.x.length > 0);
    const figures = marks.flatMap(({ figure, interval }) => [figure, ...(interval || []).filter((end) => end > figure / 10)]);
    const [low, high] = [Math.min(...figures) / 1.6, Math.max(...figures) * 1.6];
    const height = TOP + BOTTOM + 14 + marks.length * (phone() ? ROW.phone : 22);
    element.style.height = height + "px";
    draw(element, [...traces, ON_TOP], listed(marks, height, {
      range: [Math.log10(low), Math.log10(high)],
      title: axis,
      ...(streams ? rateTicks(low, high) : timeTicks(low, high)),
    }));
  };

  // ---- distributions ----------------------------------------------------------------------------------------------

  const distributionState = (run) => {
    const placements = Object.keys(PLACEMENTS).filter((placement) =>
      run.rows.some((row) => row.sides.some((side) => side.placement === placement && side.distribution)));
    const shown = new Map(); // row → index of its colour
    run.rows.forEach((row, index) => { if (row.shown) shown.set(index, shown.size); });
    return { placements, placement: placements[0], scale: "linear", shown };
  };

  const sidesOf = (run, placement) => run.rows
    .map((row, index) => ({ row, index, side: row.sides.find((side) => side.placement === placement && side.distribution) }))
    .filter(({ side }) => side);

  const freeColor = (shown) => {
    const taken = new Set(shown.values());
    let free = 0;
    while (taken.has(free)) free += 1;
    return free;
  };
  const colorOf = (number) => PALETTE()[number % PALETTE().length];

  const button = (text, pressed, press) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", press);
    return made;
  };

  const drawControls = (element, run, state, redraw) => {
    const set = (label, choices, current, choose) => {
      const group = document.createElement("span");
      group.className = "set";
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", label);
      choices.forEach((choice) => group.append(button(choice, choice === current, () => { choose(choice); redraw(); })));
      return group;
    };
    const chips = document.createElement("span");
    chips.className = "rows";
    chips.setAttribute("role", "group");
    chips.setAttribute("aria-label", "rows");
    for (const { row, index } of sidesOf(run, state.placement)) {
      const chip = button(row.label, state.shown.has(index), () => {
        if (!state.shown.delete(index)) state.shown.set(index, freeColor(state.shown));
        redraw();
      });
      chip.className = "chip";
      if (state.shown.has(index)) chip.style.setProperty("--chip", colorOf(state.shown.get(index)));
      chips.append(chip);
    }
    const focus = Array.from(element.querySelectorAll("button")).indexOf(document.activeElement);
    element.replaceChildren(
      ...(state.placements.length > 1
        ? [set("placement", state.placements, state.placement, (choice) => { state.placement = choice; })] : []),
      set("scale of the shares", ["linear", "log"], state.scale, (choice) => { state.scale = choice; }),
      chips);
    if (focus >= 0) element.querySelectorAll("button")[focus]?.focus();
  };

  const drawHistogram = (element, run, state) => {
    const bin = (number) => 10 ** (number / data.per_decade);
    let [low, high] = [Infinity, 0];
    const traces = sidesOf(run, state.placement).filter(({ index }) => state.shown.has(index)).map(({ row, index, side }) => {
      const { from, shares } = side.distribution;
      const ink = colorOf(state.shown.get(index));
      const [x, y, text] = [[bin(from)], [state.scale === "log" ? null : 0], [""]];
      shares.forEach((share, nth) => {
        const [begin, end] = [bin(from + nth), bin(from + nth + 1)];
        x.push(begin, end);
        const drawn = share > 0 || state.scale === "linear" ? share : null;
        y.push(drawn, drawn);
        const said = "<b>" + plain(row.label) + "</b><br>" + lines(percent(share) + " between " + time(begin) + " and " + time(end));
        text.push(said, said);
        // The axis reaches into the far tail only as far as it is visible.
        if (share >= (state.scale === "log" ? 1e-7 : 2e-4)) [low, high] = [Math.min(low, begin), Math.max(high, end)];
      });
      x.push(bin(from + shares.length));
      y.push(state.scale === "log" ? null : 0);
      text.push("");
      return {
        name: plain(row.label), x, y, hovertext: text, hoverinfo: "text", mode: "lines", showlegend: false,
        line: { color: ink, width: 1.6 }, fill: state.scale === "linear" ? "tozeroy" : "none", fillcolor: ink + "26",
      };
    });
    if (traces.length === 0) [low, high] = [10, 10000];
    [low, high] = [low / 1.25, high * 1.25];
    draw(element, traces, {
      margin: { l: 20, r: phone() ? 14 : 30, t: 20, b: 40 },
      hovermode: "closest",
      dragmode: phone() ? false : "zoom",
      xaxis: axis({ type: "log", range: [Math.log10(low), Math.log10(high)], title: "round trip", ...timeTicks(low, high) }),
      yaxis: axis({
        type: state.scale, title: "share of round trips", tickformat: state.scale === "log" ? "~%" : ".0%",
        rangemode: "tozero", fixedrange: true, ...(state.scale === "log" ? { dtick: 1 } : {}),
      }),
    });
  };

  const drawPercentiles = (element, run, state) => {
    let [low, high, rarest] = [Infinity, 0, 100];
    const traces = sidesOf(run, state.placement).filter(({ index }) => state.shown.has(index)).map(({ row, index, side }) => {
      const curve = side.distribution.curve.filter(([, ns]) => ns > 0);
      for (const [beyond, ns] of curve) [low, high, rarest] = [Math.min(low, ns), Math.max(high, ns), Math.max(rarest, beyond)];
      return {
        name: plain(row.label), mode: "lines", showlegend: false, hoverinfo: "text",
        x: curve.map(([beyond]) => beyond), y: curve.map(([, ns]) => ns),
        hovertext: curve.map(([beyond, ns]) => "<b>" + plain(row.label) + "</b><br>"
          + lines(percent(1 - 1 / beyond) + " took at most " + time(ns), "one in " + Number(beyond.toPrecision(3)) + " took longer")),
        line: { color: colorOf(state.shown.get(index)), width: 2, shape: "linear" },
      };
    });
    if (low > high) [low, high] = [10, 10000];
    [low, high] = [low / 1.4, high * 1.4];
    const ticks = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter((beyond) => beyond <= rarest * 1.5);
    const name = (beyond) => (beyond === 1 ? "0%" : beyond === 2 ? "50%" : Number((100 - 100 / beyond).toPrecision(12)) + "%");
    draw(element, traces, {
      margin: { l: 20, r: phone() ? 14 : 30, t: 20, b: 40 },
      hovermode: "closest",
      dragmode: phone() ? false : "zoom",
      xaxis: axis({
        type: "log", range: [0, Math.log10(rarest * 1.15)], title: "percentile",
        tickmode: "array", tickvals: ticks, ticktext: ticks.map(name),
      }),
      yaxis: axis({ type: "log", range: [Math.log10(low), Math.log10(high)], title: "round trip", ...timeTicks(low, high) }),
    });
  };

  // ---- pairs of CPUs ----------------------------------------------------------------------------------------------

  const square = (matrix) => {
    const size = matrix.cpus.length;
    const rows = Array.from({ length: size }, () => new Array(size).fill(null));
    let next = 0;
    for (let a = 0; a < size; a += 1) {
      for (let b = matrix.square ? 0 : a + 1; b < size; b += 1) {
        const value = matrix.values[next];
        next += 1;
        if (a === b) continue;
        rows[a][b] = value;
        if (!matrix.square) rows[b][a] = value;
      }
    }
    return rows;
  };

  const drawMatrix = (element, run) => {
    const matrix = run.matrices.find((matrix) => matrix.label === element.dataset.label);
    if (!matrix) {
      element.textContent = "";
      element.style.minHeight = "0";
      const said = document.createElement("p");
      said.className = "wait";
      said.textContent = "There are too many pairs to draw; the table sums them up.";
      element.append(said);
      return;
    }
    const { cpus, seats } = matrix;
    const rows = square(matrix);
    const known = rows.flat().filter((value) => value > 0);
    if (known.length === 0) return element.remove();
    let [low, high] = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, 0]);
    // A small spread should not look large.
    const middle = Math.sqrt(low * high);
    [low, high] = [Math.min(low, middle / 1.25), Math.max(high, middle * 1.25)];
    // Cells are square or nearly so, and no larger than a figure needs.
    const flat = high / low < 1.6;
    const beside = phone() || flat ? 90 : 170;
    const room = element.parentElement.clientWidth;
    const most = Math.min(room, beside + cpus.length * (cpus.length > 8 ? 40 : 80), cpus.length > 32 ? 900 : Infinity);
    const width = Math.max(Math.min(room, 330), most);
    const cell = (width - beside) / cpus.length;
    element.style.maxWidth = width + "px";
    element.style.height = Math.max(220, 100 + (width - beside) * (cpus.length <= 4 ? 0.7 : 1)) + "px";
    const many = cpus.length > 32;
    const seat = (index) => seats[index];
    const said = (index) => {
      const place = seat(index);
      return "CPU " + cpus[index] + (place ? " (node " + place[0] + ", cache " + (place[1] ?? "?") + ", core " + place[2] + ")" : "");
    };
    // Light enough for dark figures, or dark enough for light ones.
    const scale = dark.matches
      ? [[0, "#1c5a60"], [0.35, "#4f9f9c"], [0.7, "#dcb45c"], [1, "#f0956a"]]
      : [[0, "#e1f2ef"], [0.35, "#9fd3cb"], [0.7, "#f4d58d"], [1, "#ef9a70"]];
    const trace = {
      type: "heatmap", colorscale: scale, zmin: Math.log10(low), zmax: Math.log10(high), hoverongaps: false,
      z: rows.map((row) => row.map((value) => (value > 0 ? Math.log10(value) : null))),
      xgap: many ? 0 : 1, ygap: many ? 0 : 1, hoverinfo: "text",
      showscale: !flat && !phone(),
      colorbar: { ...timeTicksLog(low, high), outlinewidth: 0, thickness: 12, len: 0.9 },
    };
    // Hover texts for each cell of a large square would need more memory than the square; it shows plain figures.
    if (cpus.length <= 128) {
      trace.hovertext = rows.map((row, a) => row.map((value, b) =>
        value > 0 ? "<b>" + time(value) + "</b><br>" + lines(said(a), said(b)) : ""));
    } else {
      trace.hoverinfo = "x+y";
    }
    const digits = (cell >= 38 && low < 99.5) || high < 99.5 || (high >= 1000 && high < 99500) ? 1 : 0;
    if (!many && cell >= (digits ? 26 : 22)) {
      trace.text = rows.map((row) => row.map((value) => (value > 0 ? figureOf(value, high, digits) : "")));
      trace.texttemplate = "%{text}";
      trace.textfont = { size: Math.max(9, Math.min(15, cell * 0.32)) };
    }
    const shapes = [];
    for (let edge = 1; edge < cpus.length; edge += 1) {
      const [before, after] = [seat(edge - 1), seat(edge)];
      if (!before || !after) continue;
      const differs = [0, 1, 2].find((part) => before[part] !== after[part]);
      const threads = seats.some((a, index) => index > 0 && a && seats[index - 1] && a[2] === seats[index - 1][2]);
      if (differs === undefined || (differs === 2 && (!threads || many))) continue;
      const line = { color: color(differs === 2 ? "--soft" : differs === 1 && many ? "--panel" : "--ink"), width: [2.5, many ? 1 : 1.5, 0.6][differs] };
      shapes.push({ type: "line", x0: edge - 0.5, x1: edge - 0.5, y0: -0.5, y1: cpus.length - 0.5, line });
      shapes.push({ type: "line", y0: edge - 0.5, y1: edge - 0.5, x0: -0.5, x1: cpus.length - 0.5, line });
    }
    const stride = Math.max(1, Math.ceil(cpus.length / (phone() ? 12 : 32)));
    const ticks = cpus.map((_, index) => index).filter((index) => index % stride === 0);
    const names = { tickmode: "array", tickvals: ticks, ticktext: ticks.map((index) => String(cpus[index])) };
    draw(element, [trace], {
      margin: { l: 20, r: 10, t: 20, b: 30 }, shapes, dragmode: phone() ? false : "zoom",
      xaxis: axis({ title: "CPU" + (trace.text ? "; figures in " + (high >= 1000 ? "µs" : "ns") : ""), showgrid: false, constrain: "domain", ...names }),
      yaxis: axis({
        title: "CPU", showgrid: false, autorange: "reversed", constrain: "domain",
        ...(cpus.length > 4 ? { scaleanchor: "x" } : {}), ...names,
      }),
    });
  };
  // The page has three digits of each figure.
  const figureOf = (value, high, digits) => {
    const figure = high >= 1000 ? value / 1000 : value;
    return figure.toFixed(figure >= 99.5 ? 0 : digits);
  };
  const timeTicksLog = (low, high) => {
    const vals = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      [1, 2, 3, 5, 7].forEach((step) => vals.push(step * 10 ** power));
    }
    const inside = vals.filter((value) => value >= low && value <= high);
    return { tickmode: "array", tickvals: inside.map(Math.log10), ticktext: inside.map(time) };
  };

  // ---- all together -----------------------------------------------------------------------------------------------

  const states = data.runs.map(distributionState);

  // Speed-ups of a lock: threads upwards, hold share or interval to the right; measured and predicted beside or below each
  // other. With one column, a curve over the threads.
  const drawSurface = (element, run) => {
    const surface = run.surfaces.find((surface) => surface.label === element.dataset.label);
    if (!surface) return element.remove();
    if (surface.columns.length === 1) return drawCurve(element, surface);
    const { columns, threads, measured, predicted } = surface;
    const told = predicted.flat().some((value) => value > 0);
    const high = Math.max(1.2, ...measured.flat(), ...predicted.flat());
    const scale = dark.matches
      ? [[0, "#8f3b3b"], [1 / high, "#5a5440"], [1, "#2f8f86"]]
      : [[0, "#ef9a70"], [1 / high, "#f7efd9"], [1, "#7cc4b8"]];
    const halves = told ? [["measured", measured], ["predicted", predicted]] : [["measured", measured]];
    const stacked = phone() && told;
    const beside = told && !stacked;
    const cell = ((element.clientWidth - 60) * (beside ? 0.47 : 1)) / columns.length;
    // Figures only where they do not touch each other; without them, a scale of the colours.
    const [decimals, size] = cell < 30 ? [1, 10] : [2, 11];
    const figures = cell >= 22 && (decimals > 1 || high < 9.95);
    const figure = (value, x, y) => (value > 0 ? value.toFixed(decimals) : measured[y][x] > 0 ? "–" : "");
    const traces = halves.map(([name, values], half) => ({
      type: "heatmap", colorscale: scale, zmin: 0, zmax: high, xgap: 1, ygap: 1, showscale: !figures && half === 0,
      colorbar: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", ypad: 26, thickness: 8, len: 1, outlinewidth: 0, nticks: 6 },
      x: columns, y: threads.map(String), z: values,
      xaxis: half && beside ? "x2" : "x", yaxis: half ? "y2" : "y", hoverinfo: "text",
      hovertext: values.map((row, y) => row.map((value, x) => value > 0
        ? "<b>" + value.toFixed(2) + "×</b> " + name + "<br>" + lines(threads[y] + " threads, " + surface.across + " " + columns[x]) : "")),
    }));
    // Not the heat map's own text, which leaves out the cells without a figure.
    const texts = halves.flatMap(([, values], half) => values.flatMap((row, y) => row.map((value, x) => ({
      x, y, text: figure(value, x, y), showarrow: false, font: { size },
      xref: half && beside ? "x2" : "x", yref: half ? "y2" : "y",
    })))).filter(({ text }) => text !== "" && (figures || text === "–"));
    const top = figures ? 34 : 74;
    element.style.height = top - 34 + (stacked ? 2 : 1) * Math.max(180, 90 + 34 * threads.length) + "px";
    const named = (title, more) => axis({ title, type: "category", showgrid: false, ...more });
    const [left, right] = beside ? [[0, 0.47], [0.53, 1]] : [[0, 1], [0, 1]];
    const heading = (text, x, y) => ({
      text: "<b>" + text + "</b> speed-up", xref: "paper", yref: "paper", x, y, xanchor: "left", yanchor: "bottom",
      showarrow: false, font: { size: 12 },
    });
    draw(element, traces, {
      margin: { l: 20, r: 10, t: top, b: 30 }, dragmode: false,
      xaxis: named(surface.across, { domain: left, anchor: stacked ? "y2" : "y" }),
      yaxis: named("threads", { anchor: "x", ...(stacked ? { domain: [0.56, 1] } : {}) }),
      ...(beside ? { xaxis2: named(surface.across, { domain: right, anchor: "y2" }) } : {}),
      ...(told ? { yaxis2: named(stacked ? "threads" : "", stacked ? { domain: [0, 0.44], anchor: "x" } : { anchor: "x2" }) } : {}),
      annotations: [...texts, ...halves.map(([name], half) =>
        (stacked ? heading(name, 0, half ? 0.445 : 1) : heading(name, half ? right[0] : 0, 1)))],
    });
  };

  const drawCurve = (element, { threads, measured, predicted }) => {
    const line = (name, values, more) => ({
      name, x: threads, y: values.map(([value]) => value), mode: "lines+markers", hoverinfo: "text",
      hovertext: values.map(([value], y) => value > 0 ? "<b>" + value.toFixed(2) + "×</b> " + name + "<br>" + threads[y] + " threads" : ""), ...more,
    });
    const told = predicted.flat().some((value) => value > 0);
    element.style.height = "320px";
    draw(element, [
      ...(told ? [line("predicted", predicted, { line: { color: PALETTE()[1], dash: "dot" }, marker: { size: 5 } })] : []),
      line("measured", measured, { line: { color: PALETTE()[0] }, marker: { size: 9 } }),
    ], {
      margin: { l: 20, r: 14, t: 34, b: 30 }, dragmode: false, hovermode: "closest",
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom" },
      xaxis: axis({ title: "threads" }), yaxis: axis({ title: "speed-up", rangemode: "tozero" }),
    });
  };

  const drawRun = (section, run, state) => {
    const chart = (name) => section.querySelector(`[data-chart="${name}"]`);
    const controls = section.querySelector("[data-controls]");
    const distributions = () => {
      if (!chart("histogram")) return;
      drawControls(controls, run, state, distributions);
      drawHistogram(chart("histogram"), run, state);
      drawPercentiles(chart("percentiles"), run, state);
    };
    if (chart("ladder")) drawLadder(chart("ladder"), run);
    distributions();
    section.querySelectorAll('[data-chart="matrix"]').forEach((element) => drawMatrix(element, run));
    section.querySelectorAll('[data-chart="queue"]').forEach((element) => drawQueue(element, run));
    section.querySelectorAll('[data-chart="surface"]').forEach((element) => drawSurface(element, run));
  };
  const drawAll = () => {
    document.querySelectorAll("section.run").forEach((section) => {
      const index = Number(section.dataset.run);
      drawRun(section, data.runs[index], states[index]);
    });
    document.documentElement.dataset.drawn = "yes";
  };

  const say = (text) => document.querySelectorAll("[data-chart]").forEach((element) => {
    const said = document.createElement("p");
    said.className = "wait";
    said.textContent = text;
    element.replaceChildren(said);
  });

  const unpack = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    if (typeof Plotly === "undefined") throw new Error("the charting script did not run");
  };

  if (document.querySelector("[data-chart]") === null) {
    document.documentElement.dataset.drawn = "yes";
    return;
  }
  say("Drawing …");
  if (typeof DecompressionStream === "undefined") {
    say("This browser is too old to draw the charts; the tables have all the figures.");
    return;
  }
  unpack().then(() => {
    drawAll();
    dark.addEventListener("change", drawAll);
    // Also without a resized window: a scroll bar that appears takes its width from the charts.
    const main = document.querySelector("main");
    let width = main.clientWidth;
    new ResizeObserver(() => {
      if (main.clientWidth === width) return;
      width = main.clientWidth;
      drawAll();
    }).observe(main);
  }).catch((error) => {
    console.error(error);
    say("The charts could not be drawn; the tables have all the figures.");
  });
})();
