/// The key=value words of a request.
module keys;

import std.algorithm : map;
import std.array : array, split;
import std.conv : to;
import std.exception : enforce;
import std.format : format;

/// Words that are left at the end are unknown.
final class Keys
{
    private string[string] left;

    this(string[] words)
    {
        foreach (word; words)
        {
            auto parts = word.split("=");
            enforce(parts.length == 2 && parts[0].length > 0,
                format("“%s” is not of the form key=value", word));
            enforce(parts[0] !in left, parts[0] ~ " is given twice");
            left[parts[0]] = parts[1];
        }
    }

    string text(string key)
    {
        enforce(key in left, key ~ " is missing");
        auto value = left[key];
        left.remove(key);
        return value;
    }

    long number(string key, long least, long most)
    {
        auto value = text(key);
        long found = -1;
        try
            found = value.to!long;
        catch (Exception)
        {
        }
        enforce(found >= 0 && value[0] != '+', format("%s=%s is not a number", key, value));
        enforce(found >= least && found <= most,
            format("%s=%d is impossible: it is from %d to %d", key, found, least, most));
        return found;
    }

    /// CPUs for the threads; none if they are not pinned.
    int[] cpus()
    {
        auto value = text("cpus");
        if (value.length == 0)
            return null;
        try
            return value.split(",").map!(word => int(word.to!ushort)).array;
        catch (Exception)
            throw new Exception(format("cpus=%s is not a list of CPUs", value));
    }

    void finish()
    {
        foreach (key; left.byKey)
            throw new Exception(key ~ " does not apply here");
    }
}
