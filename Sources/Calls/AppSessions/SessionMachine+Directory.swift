import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

/// The key of a directory: a user's own, or the one that all users of an account share. A device has its user's directory and
/// those of its accounts.
public enum DirectoryScope {
  public static func user(_ id: String) -> String { "user:" + id }
  public static func account(_ name: String) -> String { "account:" + name }

  /// The scopes of a device. If two of its directories have the same number, the name in the first one is used.
  public static func of(_ device: DeviceKey, accounts: [String]) -> [String] {
    [user(device.user)] + accounts.map(account)
  }
}

extension SessionMachine {
  /// The login token identifies the device of an HTTP request; the control thread decides whether that device may act.
  mutating func httpLogin(_ request: HTTPRequestID, bearer: String?, _ now: Instant, _ output: inout Output) {
    guard pendingHTTP.count < Limits.pendingHTTP else {
      return output.actions.append(.httpRefused(request, Failure(.overload, msg: "busy")))
    }
    do throws(RefusedHello) {
      let claims = try verify(bearer ?? "", device: nil, now, &output)
      // the request names no accounts: those of the token apply
      let accounts = claims.acct.flatMap { $0.isEmpty ? nil : $0 } ?? ["default"]
      let device = DeviceKey(user: claims.sub, device: claims.dev)
      pendingHTTP[request] = .login(device, accounts: accounts)
      output.events.append(.httpLogin(request, device))
    } catch {
      let isLater = error.refusal == .keysUnavailable
      let failure = isLater ? Failure(.overload, msg: error.message) : Failure(.auth, msg: "authorization: Bearer <login token>")
      output.actions.append(.httpRefused(request, failure))
    }
  }

  /// The value of `welcome.dirVersion`.
  func directoryVersion(_ session: Session) -> Int {
    let scopes = DirectoryScope.of(session.device, accounts: session.info.accounts)
    return max(session.directoryVersion, scopes.compactMap { directoryVersions[$0] }.max() ?? 0)
  }
}
