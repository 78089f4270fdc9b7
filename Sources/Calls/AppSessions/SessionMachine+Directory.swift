import AppProtocol
import Bytes
import JSONWebToken

/// Whose directory it is: a user's own, or that of everybody who is logged in to an account. A device has its user's and its accounts'.
public enum DirectoryScope {
  public static func user(_ id: String) -> String { "user:" + id }
  public static func account(_ name: String) -> String { "account:" + name }

  /// Those of a device; of two that have the same number the first says what it is called.
  public static func of(_ device: DeviceKey, accounts: [String]) -> [String] {
    [user(device.user)] + accounts.map(account)
  }
}

extension SessionMachine {
  /// A login token says who asks by HTTP; whether that device may act is control's to say.
  mutating func httpLogin(_ request: HTTPRequestID, bearer: String?, _ now: Instant, _ output: inout Output) {
    guard pendingHTTP.count < Limits.pendingHTTP else {
      return output.actions.append(.httpRefused(request, Failure(.overload, msg: "busy")))
    }
    guard let login = login(bearer ?? "", at: now) else {
      return output.actions.append(.httpRefused(request, Failure(.auth, msg: "authorization: Bearer <login token>")))
    }
    pendingHTTP[request] = .login(login.device, accounts: login.accounts)
    output.events.append(.httpLogin(request, login.device))
  }

  /// Who a login token is of; nil: it is none, or its user is not known. The accounts are those of the token. Whether that device may act is not
  /// in it.
  public func login(_ token: String, at now: Instant) -> (device: DeviceKey, accounts: [String])? {
    guard let claims = try? verify(token, device: nil, now) else { return nil }
    return (DeviceKey(user: claims.sub, device: claims.dev), claims.acct.flatMap { $0.isEmpty ? nil : $0 } ?? ["default"])
  }

  /// `welcome.dirVersion`.
  func directoryVersion(_ session: Session) -> Int {
    let scopes = DirectoryScope.of(session.device, accounts: session.info.accounts)
    return max(session.directoryVersion, scopes.compactMap { directoryVersions[$0] }.max() ?? 0)
  }
}
