/// A request of a `PhoneModel` to its shell.
public enum PhoneRequest: Sendable, Equatable {
  /// Start the app's process, which sends `launched`.
  case launch
  /// End it at once.
  case kill
  case send(PhoneMessage)
}
