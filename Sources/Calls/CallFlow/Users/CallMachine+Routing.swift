import CallModel
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Calls whose users a webhook names (`route: { webhook: … }`): they exist while the query is pending, and continue with its
/// answer or, without one, by the fallback. A late answer is used only to show the caller.
extension CallMachine {
  mutating func ask(
    _ call: Call, about invite: InboundInvite, at hook: Routing.Hook, toward: IPAddress, diversions: Diversions,
    _ step: inout Step
  ) {
    admit(call, &step)
    let isPrivate = invite.isPrivate
    var question = RouteQuestion(
      call: call.id, sipCallId: call.sipCallID, trunk: call.trunk.name, from: isPrivate ? nil : call.parties.callerNumber,
      name: isPrivate ? nil : call.parties.from.n, to: call.parties.calledNumber, diverted: call.parties.divertedFrom.map(\.h),
      at: step.wallNow)
    question.parameters = call.parties.parameters?.values
    step.output.actions.append(.askRoute(question, hook.webhook))
    change(call.id, &step) { call, step in
      let query = RouteQuery(hook: hook, toward: toward, diversions: diversions)
      call.route.ask(query, until: step.now + step.configuration.timers.route)
      call.startJournal(&step)
    }
  }

  /// Handles the webhook's answer, or nil for none: in time, too late, or after the call.
  mutating func routed(_ id: CallID, _ answer: RouteAnswer?, _ step: inout Step) {
    guard let call = calls[id], call.isLive else { return }
    if let answer, let caller = answer.caller(call.parties.from) { change(id, &step) { $0.callerKnown(caller, &$1) } }
    var pending: RouteQuery?
    change(id, &step) { call, step in
      pending = call.route.end()
      guard pending != nil else { return }
      let fault = answer?.parameters.flatMap { call.parties.add($0) }
      call.mark(.routed, detail: answer == nil ? "fallback" : fault.map { "webhook; \($0)" } ?? "webhook", &step)
    }
    guard let routeQuery = pending else { return }
    if let code = answer?.code { return refuseRouted(id, code, &step) }
    var users: [String] = []
    for user in answer?.users ?? [] where routing.user(user) != nil && !users.contains(user) { users.append(user) }
    if users.isEmpty {
      switch routeQuery.hook.fallback {
      case .code(let code): return refuseRouted(id, code, &step)
      case .user(let user): users = [user]
      case .users: users = routing.owner(of: call.parties.calledNumber).map { [$0] } ?? []
      }
    }
    ringFoundUsers(id, routeQuery, users, &step)
  }

  private mutating func refuseRouted(_ id: CallID, _ code: Int, _ step: inout Step) {
    change(id, &step) { $0.end(.init(EndReason(routeCode: code), by: .gateway, detail: "route"), refusing: code, &$1) }
  }

  private mutating func ringFoundUsers(_ id: CallID, _ routeQuery: RouteQuery, _ found: [String], _ step: inout Step) {
    guard let call = calls[id] else { return }
    let open = found.filter { user in
      let account = routing.account(of: user, called: call.parties.calledNumber, route: call.users.routeAccount)
      return blocking(call, user: user, account: account) == nil
    }
    if open.isEmpty, !found.isEmpty {
      return change(id, &step) { $0.end(.init(.blocked, by: .gateway, detail: found.joined(separator: " ")), &$1) }
    }
    let users = open.filter { routing.user($0) != nil && calls.count(of: $0) < configuration.bounds.callsPerUser }
    guard !users.isEmpty else {
      let ending =
        found.isEmpty
        ? Call.Ending(.notFound, by: .gateway, q850: 1) : .init(.overload, by: .gateway, detail: "too many calls of the user")
      return change(id, &step) { $0.end(ending, &$1) }
    }
    let (rules, limit) = (diversions(of: users[0]).orElse(routeQuery.diversions), Limits.usersPerCall)
    for user in users.prefix(limit) { calls.add(user, to: id) }
    let accounts = users.prefix(limit).map {
      ($0, routing.account(of: $0, called: call.parties.calledNumber, route: call.users.routeAccount))
    }
    change(id, &step) { call, _ in
      for (user, account) in accounts { call.users.belongs(to: account, of: user) }
      call.users.ring(for: Array(users.prefix(limit)))
      call.diversions.adopt(rules)
    }
    if configuration.isClustered { return locate(id, then: .routed(toward: routeQuery.toward), &step) }
    ringRouted(id, toward: routeQuery.toward, &step)
  }

  /// Reserves media for a call whose users are known, if one of them can be reached or a rule diverts the call.
  mutating func ringRouted(_ id: CallID, toward: IPAddress, _ step: inout Step) {
    guard let call = calls[id] else { return }
    guard isReachable(call, step.now) || call.diversions.rules.rules[.unreached] != nil else {
      let ending = unreachedEnding(call, step.now)
      return change(id, &step) { $0.endUnlessDiverted(.unreached, ending, &$1) }
    }
    pending.waitForMedia(id, then: .asked)
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(
          id, session: call.session, user: call.users.owner, others: call.users.ringing, toward: toward,
          asked: call.intake?.invite.source)))
  }

  /// A device can be offered the call, or woken for it. Includes a device whose socket broke a moment ago, which may resume.
  func isReachable(_ call: Call, _ now: Instant) -> Bool {
    call.users.ringing.contains { user in
      ringable(user, for: call).contains { $0.isReachable(at: now) } || !wakeable(user, for: call).isEmpty
    } || !ringableRemoteDevices(call).isEmpty
  }
}

extension RouteAnswer {
  /// The caller to show from now on; nil if the answer does not name one. A withheld number stays withheld.
  fileprivate func caller(_ known: Handle) -> Handle? {
    guard name != nil || from != nil else { return nil }
    var out = known
    if let from, known.h != Handle.anonymous.h { out = Handle(number: from, name: known.n) }
    if let name { out.n = name.isEmpty ? nil : name }
    return out
  }
}

extension EndReason {
  /// The reason of a webhook's refusal: a 5xx is a fault of this side, not of a carrier.
  fileprivate init(routeCode code: Int) {
    let reason = EndReason(sipStatus: code)
    self = reason == .trunkFailed ? (code == 503 ? .overload : .server) : reason
  }
}
