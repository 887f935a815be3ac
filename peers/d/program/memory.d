/// Memory of threads that are measured.
module memory;

/// Keeps what one thread writes off the cache lines of others.
struct Padding
{
    private ubyte[128] bytes;
}

/// A flag that threads share.
final class Flag
{
    private Padding before;
    shared bool raised;
    private Padding after;
}

/// At least `count` values, in `old` if there is room, whose pages have been touched.
T[] touched(T)(T[] old, size_t count)
{
    auto values = old.length >= count ? old : new T[](count);
    values[] = 1;
    return values;
}
