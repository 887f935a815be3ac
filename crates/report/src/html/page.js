"use strict";
// Sorts the tables.
(() => {
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
})();
