import CallModel

extension Call {
  /// The users whose devices may have the call.
  struct Users {
    /// The call's user; while it rings for several, the first of them. Empty: not known yet.
    private(set) var owner: String
    /// Users whose devices ring.
    private(set) var ringing: [String]
    /// Users whose devices rang before the call was diverted.
    private(set) var former: [String] = []
    /// The account of an outgoing call, or of an incoming one for which none is configured.
    let account: String
    /// Accounts of an incoming call, by user: only devices that are logged in to the account ring.
    private(set) var accounts: [String: String] = [:]
    /// The route's account, for users without their own.
    private(set) var routeAccount: String?
    /// What follows once the cluster has located the users' devices; nil: no query is pending.
    private(set) var locating: CallMachine.Found?
    /// Their devices at other nodes.
    private(set) var remoteDevices: [RemoteDevice] = []

    init(_ owner: String, account: String, ofRoute routeAccount: String? = nil) {
      (self.owner, self.account, self.routeAccount) = (owner, account, routeAccount)
      ringing = owner.isEmpty ? [] : [owner]
    }

    func concerns(_ user: String) -> Bool { ringing.contains(user) || former.contains(user) }
    /// All users whose devices may know of the call.
    var concerned: [String] { ringing + former }

    /// The account that devices of this user are sent.
    func account(of user: String) -> String { accounts[user] ?? account }

    func isFor(_ accounts: [String], of user: String) -> Bool { self.accounts[user].map(accounts.contains) ?? true }

    mutating func belongs(to account: String?, of user: String) { accounts[user] = account }

    mutating func answered(by user: String) { owner = user }

    /// The cluster is queried for the users' devices.
    mutating func locate(then next: CallMachine.Found) { locating = next }
    mutating func located() { locating = nil }
    mutating func found(_ devices: [RemoteDevice]) { remoteDevices = devices }

    mutating func ring(for next: [String]) {
      former += ringing.filter { !former.contains($0) }
      ringing = next
      if let first = next.first { owner = first }
    }
  }
}
