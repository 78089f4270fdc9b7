/// Whether audio may run, and whether captured audio reaches the remote party.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | inactive | `activate` | active, connected if it says so | whether the call is connected by it |
/// | active | `activate`, the same again | same | false |
/// | active, connected | `activate`, not connected | active | false |
/// | any | `close` | inactive | – |
struct AudioActivation: Sendable {
  private(set) var isActive = false
  private(set) var isConnected = false

  mutating func activate(isConnected: Bool) -> Bool {
    defer { (isActive, self.isConnected) = (true, isConnected) }
    return isConnected && !self.isConnected
  }
  mutating func close() { isActive = false }
}
