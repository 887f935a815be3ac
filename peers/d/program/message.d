/// Messages: a number that counts from 1, below that of their sender.
module message;

/// The end of a block, from the only sender or the first one.
enum ulong end = 0;

enum wrongMessage = "a message was wrong, lost, repeated or out of order";

private enum numberBits = 56;

/// The end of a block from this sender. Its messages are numbered on from here.
ulong endOf(size_t sender)
{
    return cast(ulong) sender << numberBits;
}

pragma(inline, true):

bool isEnd(ulong message)
{
    return message << (ulong.sizeof * 8 - numberBits) == 0;
}

size_t senderOf(ulong message)
{
    return message >> numberBits;
}
