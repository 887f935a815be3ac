"use strict";
// Sorts the tables.
(() => {
  const UNITS = { "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12, KiB: 1024, MiB: 1048576, M: 1e6 };
  // The first number of a cell, by its unit; a text without a number as it is; null if unknown.
  // Bounds, as in `below 1 µs`, are beyond all numbers.
  const sortKey = (row, column) => {
    const text = row.cells[column].textContent.trim().replaceAll("\u202f", "");
    const bound = /^(below|above) \d/.exec(text);
    if (bound) return bound[1] === "below" ? -Infinity : Infinity;
    const found = /^[≥<>+]?([-−]?)(\d[\d.]*(?:e-?\d+)?)[^a-zA-Zµ]*(µs|ms|min|s|h|KiB|MiB|M)?(?![a-z])/.exec(text);
    if (found) return (found[1] ? -1 : 1) * Number(found[2]) * (UNITS[found[3]] ?? 1);
    return text === "" || text === "–" ? null : text.toLowerCase();
  };

  const sortBy = (table, head, column) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [sortKey(row, column), row]);
    // Unknown values come last in both directions, and so do texts in a column of numbers.
    const numeric = rows.some(([key]) => typeof key === "number");
    const isLast = (key) => key === null || (numeric && typeof key !== "number");
    rows.sort(([a], [b]) => {
      if (isLast(a) || isLast(b)) return isLast(a) - isLast(b);
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
})();
