/// Decides when audio is played faster. A cut in a pause is inaudible and one in a word slightly audible, so excess delay waits
/// for a pause, but at most half a second; from 60 ms on it does not wait.
struct Stretching {
  private var waited = 0
  private static let longestWaitTicks = 25
  /// Ticks between two cuts in words.
  private static let spacing = 10
  private static let urgent = 480

  mutating func mayShrink(_ surplus: Int, isPause: Bool) -> Bool {
    if isPause || surplus >= Self.urgent {
      waited = 0
      return true
    }
    waited += 1
    guard waited >= Self.longestWaitTicks else { return false }
    waited -= Self.spacing
    return true
  }
}
