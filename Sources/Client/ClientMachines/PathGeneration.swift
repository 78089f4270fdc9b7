/// The generation of a call's path, which each ICE restart replaces, and whether it uses relays alone: a firewall may pass checks
/// and drop everything after them.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | any | `begin` | that generation; connected only if it or a later one was | – |
/// | any | `restart` | relays alone if the last failure demands it and there are relays; else all kinds of candidates | – |
/// | not connected, all kinds | `failed` | same; the next one has relays alone | – |
/// | not connected, relays alone | `failed` | same; the next one has all kinds | – |
/// | connected | `failed` | same, and so for the next one | – |
/// | not connected | `connected` | connected; the next one has all kinds | true: it is reported |
/// | connected | `connected` | same | false |
struct PathGeneration: Sendable {
  private(set) var number = 1
  private(set) var isRelayOnly = false
  private var isNextRelayOnly = false
  /// The last generation that was connected.
  private var connectedNumber = 0

  /// A path of this generation or of an earlier one was connected.
  var hasConnected: Bool { connectedNumber > 0 }

  mutating func begin(_ number: Int) { self.number = number }

  mutating func restart(hasRelays: Bool) {
    isRelayOnly = isNextRelayOnly && hasRelays
    isNextRelayOnly = false
  }

  mutating func failed() { if connectedNumber < number { isNextRelayOnly = !isRelayOnly } }

  mutating func connected() -> Bool {
    guard connectedNumber < number else { return false }
    (connectedNumber, isNextRelayOnly) = (number, false)
    return true
  }
}
