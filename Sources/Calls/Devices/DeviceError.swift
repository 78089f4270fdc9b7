public import PushPolicy
public import TrunklineAppProtocol

/// Why a registration was refused; nothing has changed then.
public enum DeviceError: Error, Hashable, Sendable {
  case token(PushService, TargetProblem)
  /// No service has this `kind`.
  case kind(String)
  /// `env` is neither `production` nor `sandbox`.
  case environment(String)
  case revoked
  case tooManyDevices(limit: Int)
  case tooManyBindings(limit: Int)
  /// The table is full.
  case full
  /// No such device of this user.
  case unknown

  /// The failure that the app is sent.
  public var failure: Failure {
    switch self {
    case .token, .kind, .environment: Failure(.badRequest, msg: text)
    case .revoked: Failure(.revoked, msg: text)
    case .tooManyDevices, .tooManyBindings: Failure(.tooMany, msg: text)
    case .full: Failure(.overload, msg: text, retryMs: 60_000)
    case .unknown: Failure(.notFound, msg: text)
    }
  }

  /// One line that states what to do. Never holds a token.
  public var text: String {
    switch self {
    case .token(let service, let problem): "push.\(problem.field): \(problem.text(service))"
    case .kind(let given): "push.kind: \"\(given.prefix(32))\" is not a service: \(PushService.kinds) are"
    case .environment(let given): "push.env: \"\(given.prefix(32))\" is neither production nor sandbox"
    case .revoked: "this device was revoked by the operator"
    case .tooManyDevices(let limit): "the user has \(limit) devices that were seen in the last 30 days: log one of them out"
    case .tooManyBindings(let limit): "the device has \(limit) push registrations: send device.del first"
    case .full: "no room for another device"
    case .unknown: "no such device"
    }
  }
}

extension TargetProblem {
  fileprivate var field: String {
    switch self {
    case .topicMissing, .topicTooLong, .topicMalformed: "topic"
    case .empty, .tooLong, .malformed: "token"
    case .sealKey: "sealKey"
    case .notConfigured: "kind"
    case .host: "token"
    }
  }

  fileprivate func text(_ service: PushService) -> String {
    switch self {
    case .empty: "is empty"
    case .tooLong(let limit): "longer than \(limit) characters, which no \(service.rawValue) token is"
    case .malformed: service.provider.tokenRule
    case .topicMissing: "is missing; it is the bundle identifier with .voip behind it"
    case .topicTooLong(let limit): "longer than \(limit) characters"
    case .topicMalformed:
      service.provider.hasEnvironments
        ? "must be the bundle identifier with .voip behind it" : "may hold letters, digits, - . and _ only"
    case .sealKey: "must be the 32 bytes of an X25519 public key as Base64url"
    case .notConfigured: "this gateway does not push by \(service.rawValue)"
    case .host: "this gateway does not push to the endpoint's host: see hosts of push.webpush"
    }
  }
}
