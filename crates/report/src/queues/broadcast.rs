use super::stream;
use super::view::View;

pub(super) const VIEW: View = View {
    scenario: "broadcast",
    question: "Which queue brings every message to several receivers",
    sentence: "messages of 8 bytes from one sender, sent as fast as the slowest receiver takes them, each verified by every receiver. A bundle has a pipe for each receiver. In a diamond, the last receiver gets a message after all others.",
    ..stream::VIEW
};
