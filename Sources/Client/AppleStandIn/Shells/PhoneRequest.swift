/// What a shell does for a `PhoneModel`.
public enum PhoneRequest: Sendable, Equatable {
  /// Start the app's process; it says `launched`.
  case launch
  /// End it at once.
  case kill
  case send(PhoneMessage)
}
