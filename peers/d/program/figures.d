/// Figures of a block.
module figures;

import std.algorithm : sort;
import std.array : Appender;
import std.format : formattedWrite;

double median(double[] values)
{
    auto sorted = values.dup;
    sorted.sort();
    immutable half = sorted.length / 2;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// Appends a line for each distinct value, ascending, with the number of times.
void histogram(ref Appender!string text, string name, const long[] values)
{
    auto sorted = values.dup;
    sorted.sort();
    Appender!string lines;
    size_t distinct;
    for (size_t i; i < sorted.length;)
    {
        auto next = i + 1;
        while (next < sorted.length && sorted[next] == sorted[i])
            next++;
        lines.formattedWrite("%d %d\n", sorted[i], next - i);
        distinct++;
        i = next;
    }
    text.formattedWrite("%s %d\n%s", name, distinct, lines[]);
}
