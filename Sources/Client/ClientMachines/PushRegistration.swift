import TrunklineAppProtocol
import TrunklineBytes

/// The push token and the user's preferences at the gateway. It is registered at every login, launch and new push token, as the
/// gateway may have lost the registration, and one request is open at a time: a system that issues a new token each second must
/// not fill the session.
///
/// | state | `messages` | `answered` | `sessionEnded` |
/// |---|---|---|---|
/// | nothing to register | none | – | – |
/// | a token or preferences | `device.put` → open | – | – |
/// | the token was dropped | `device.del`, then as above | – | – |
/// | open | none; the latest is sent afterwards | → closed; true: send `messages` now | → closed |
struct PushRegistration: Sendable {
  private var push: DevicePut.Push?
  private var preferences: DevicePut.Preferences?
  /// The gateway still has a push token that is no longer valid.
  private var isDropped = false
  private var question: Identifier?
  /// The registration has changed since the request.
  private var isOld = false

  mutating func set(_ token: DevicePut.Push?) {
    isDropped = token == nil && (push != nil || isDropped)
    push = token
  }

  mutating func set(_ wanted: DevicePut.Preferences) { preferences = wanted }

  /// The messages to send now. The `device.put` among them is open once `asked`.
  mutating func messages() -> [ClientMessage] {
    isOld = question != nil
    guard !isOld else { return [] }
    let removal: [ClientMessage] = isDropped ? [.deviceDel] : []
    isDropped = false
    guard push != nil || preferences != nil else { return removal }
    return removal + [.devicePut(DevicePut(push: push, prefs: preferences))]
  }

  /// - Parameter question: nil: the `device.put` could not be sent.
  mutating func asked(_ question: Identifier?) { self.question = question }

  func isQuestion(_ id: Identifier) -> Bool { question == id }

  /// True: it has changed since the request.
  mutating func answered() -> Bool {
    question = nil
    return isOld
  }

  mutating func sessionEnded() { question = nil }

  mutating func loggedOut() { (push, preferences) = (nil, nil) }
}
