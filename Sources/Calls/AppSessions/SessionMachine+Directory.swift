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
    do throws(RefusedHello) {
      let claims = try verify(bearer ?? "", device: nil, now, &output)
      // the accounts are those of the token
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

  /// `welcome.dirVersion`.
  func directoryVersion(_ session: Session) -> Int {
    let scopes = DirectoryScope.of(session.device, accounts: session.info.accounts)
    return max(session.directoryVersion, scopes.compactMap { directoryVersions[$0] }.max() ?? 0)
  }
}
