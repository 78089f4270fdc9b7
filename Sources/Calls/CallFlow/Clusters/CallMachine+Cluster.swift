import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Calls in a cluster: before a call rings, the cluster is queried for the locations of its users' devices and for room under the
/// limits. Without `CallConfiguration.isClustered` there is no query.
extension CallMachine {
  /// How an existing call continues once its users' devices are located.
  enum Found: Equatable {
    /// For users that a webhook named; media is then reserved, toward the caller.
    case routed(toward: IPAddress)
    /// For the call's present user: after a diversion, or once a number that is called first has answered.
    case diverted
  }

  // MARK: incoming

  /// Locates the users of a call that does not exist yet: if it is redirected to another node, it never exists here.
  mutating func locate(_ call: Call, user: String, toward: IPAddress, _ step: inout Step) {
    calls.attach(call.trunkLeg.id, to: call.id)
    let question = question(call, mostOfTrunk: call.trunk.maximumCalls, mayRedirect: mayRedirect(call))
    pending.waitForLocation(.init(call: call, user: user, toward: toward))
    step.output.actions.append(.locate(question))
  }

  /// Locates the devices of further users of an existing call.
  mutating func locate(_ id: CallID, then found: Found, _ step: inout Step) {
    guard let call = calls[id], call.isLive else { return }
    calls.change(id) { $0.users.locate(then: found) }
    // a call that a webhook routes is counted only now
    let most = call.trunkLeg.holdsSlot ? nil : call.trunk.maximumCalls
    step.output.actions.append(.locate(question(call, mostOfTrunk: most, mayRedirect: false)))
  }

  private func question(_ call: Call, mostOfTrunk: Int?, mayRedirect: Bool) -> LocateQuestion {
    let here = call.users.ringing.filter { presences[$0].contains(where: \.isConnected) }
    return LocateQuestion(
      call.id, users: call.users.ringing, trunk: call.trunk.name, mostOfTrunk: mostOfTrunk,
      mostOfUser: configuration.bounds.callsPerUser, mayRedirect: mayRedirect, connectedHere: Set(here))
  }

  /// Only an edge follows a redirect, and once for each INVITE: a carrier would bill it, or refuse it.
  private func mayRedirect(_ call: Call) -> Bool {
    call.intake.map { $0.invite.isFromEdge && !$0.invite.isSteered } ?? false
  }

  /// Handles the cluster's answer, or the node's own if there was none.
  mutating func located(_ id: CallID, _ answer: Located, _ step: inout Step) {
    guard let locating = pending.popLocating(id) else { return locatedLive(id, answer, &step) }
    var call = locating.call
    guard let invite = call.intake?.invite else { return }
    switch answer {
    case .redirect(let node):
      step.sip(.redirect(call.trunkLeg.id, to: node))
      var refusal = Refusal(
        .steered, .incoming, trunk: call.trunk.name, detail: node,
        caller: .init(number: invite.isPrivate ? nil : call.parties.callerNumber, call: invite.callID))
      refusal.isRoutine = true
      step.output.actions.append(.refused(refusal))
    case .refused(let reason): refuse(call.trunkLeg.id, invite, reason, code: 503, &step)
    case .here(let remoteDevices, let registry, let isHeard):
      learn(registry, &step)
      call.users.found(remoteDevices)
      call.trunkLeg.holdSlot(needsSlot(call.trunk))
      guard isReachable(call, step.now) || call.diversions.rules.rules[.unreached] != nil else {
        if !isHeard, invite.isFromEdge, !isPresent(call, step.now) { return passOn(call, invite, &step) }
        return rejectUnreached(call, &step)
      }
      pending.waitForMedia(id, then: .incoming(call))
      step.output.actions.append(
        .reserveMedia(
          MediaRequest(
            id, session: call.session, user: locating.user, others: call.users.ringing, toward: locating.toward,
            asked: invite.source))
      )
    }
  }

  /// A device of the call's users is connected here, even if it accepts no calls.
  private func isPresent(_ call: Call, _ now: Instant) -> Bool {
    call.users.ringing.contains { presences[$0].contains { $0.isReachable(at: now) } }
  }

  /// Refuses a call of an edge if the user's location is not known here: another node may have the device, and the edge tries the
  /// next one. No call exists here. A carrier that dials us directly has no other node to try.
  private mutating func passOn(_ call: Call, _ invite: InboundInvite, _ step: inout Step) {
    unclaim(call.id, &step)
    refuse(call.trunkLeg.id, invite, .unlocated, code: 503, &step)
  }

  private mutating func locatedLive(_ id: CallID, _ answer: Located, _ step: inout Step) {
    guard let call = calls[id], call.isLive, let found = call.users.locating else { return }
    calls.change(id) { $0.users.located() }
    switch answer {
    case .here(let remoteDevices, let registry, _):
      learn(registry, &step)
      let holdsSlot = needsSlot(call.trunk)
      calls.change(id) {
        $0.users.found(remoteDevices)
        $0.trunkLeg.holdSlot(holdsSlot)
      }
    case .redirect: break  // was not allowed: the call rings here
    case .refused(let reason):
      return change(id, &step) { $0.end(.overload, by: .gateway, detail: reason.rawValue, &$1) }
    }
    switch found {
    case .routed(let toward): ringRouted(id, toward: toward, &step)
    case .diverted: ring(id, &step)
    }
  }

  /// The caller gave up while the users' devices were being located: records a call that never rang.
  mutating func cancelledWhileLocating(_ leg: LegID, _ cause: ReasonValue?, _ step: inout Step) -> Bool {
    guard let id = calls.id(of: leg), let call = pending.popLocating(id)?.call else { return false }
    admit(call, &step)
    change(id, &step) { $0.cancelled(cause, &$1) }
    return true
  }

  /// Merges what the shared store has of these users' devices; newer data of this node stays.
  private mutating func learn(_ registry: [String: [Device]], _ step: inout Step) {
    for (user, stored) in registry { devices.learn(stored, of: user, at: step.wallNow) }
  }

  /// Devices at other nodes that a call of these users wakes: those that are not connected here.
  func ringableRemoteDevices(_ call: Call) -> [RemoteDevice] {
    call.users.remoteDevices.filter { remote in
      call.users.ringing.contains(remote.key.user) && presences[remote.key]?.isConnected != true && devices.wantsCalls(remote.key)
        && call.users.isFor(remote.accounts, of: remote.key.user) && remote.isWakeable
    }
  }

  // MARK: other nodes

  mutating func handle(_ event: RemoteEvent, _ step: inout Step) {
    switch event {
    case .deviceConnected(let remote): remoteDeviceConnected(remote, &step)
    case .callLost(let id, let user): remoteCallLost(id, user, &step)
    }
  }

  /// A device connected to another node: calls of its user that may ring there wake it through that node.
  mutating func remoteDeviceConnected(_ remote: RemoteDevice, _ step: inout Step) {
    if presences.move(to: remote) { return }
    let wantsCalls = devices.wantsCalls(remote.key)
    for id in calls.ids(of: remote.key.user) { change(id, &step) { $0.came(remote, wantsCalls: wantsCalls, &$1) } }
  }

  /// Removes from the cluster a call that was refused before it existed.
  mutating func unclaim(_ id: CallID, _ step: inout Step) {
    if configuration.isClustered { step.output.actions.append(.unclaimed(id)) }
  }

  // MARK: nodes that die

  /// A call of a dead node: the sender of this input closes its legs, and its record is written here.
  mutating func orphaned(_ line: JournalEntry, _ users: [String], _ step: inout Step) {
    guard calls[line.call] == nil, tombstones[line.call] == nil else { return }
    var record = CallRecord(orphan: line, at: step.wallNow)
    record.end.detail = "node lost"
    step.statistics.started[line.direction, default: [:]][line.trunk, default: 0] += 1
    step.statistics.ended[record.end.reason, default: [:]][record.end.by, default: 0] += 1
    step.output.actions.append(.record(record))
    insertTombstone(line.call, of: users, direction: line.direction, wasPushed: true, &step)
    for user in users { sendLost(line.call, user, &step) }
  }

  /// Another node closed a dead node's call of this user.
  private mutating func remoteCallLost(_ id: CallID, _ user: String, _ step: inout Step) {
    guard calls[id] == nil else { return }
    if tombstones[id] == nil {
      insertTombstone(id, of: [user], direction: .incoming, wasPushed: false, &step)
    } else {
      tombstones.add(user, to: id)
    }
    sendLost(id, user, &step)
  }

  private mutating func insertTombstone(
    _ id: CallID, of users: [String], direction: CallDirection, wasPushed: Bool, _ step: inout Step
  ) {
    let forgotten = tombstones.insert(
      Tombstone(
        users: users, direction: direction, owner: nil,
        over: CallOver(.gatewayRestart, by: .gateway, at: step.wallNow), terminals: [:], wasPushed: wasPushed,
        expires: step.now + configuration.timers.tombstone, isOfDeadNode: true), for: id)
    for id in forgotten { step.app(.wakesOver(id)) }
  }

  /// Sends `call.gone` to the user's devices here: those that were woken for the call, or had it, still show it. Those that
  /// connect later get it from `welcome`.
  private mutating func sendLost(_ id: CallID, _ user: String, _ step: inout Step) {
    for device in presences[user] where device.isConnected {
      if let over = tombstones.popLost(id, device.key) { step.send(.callGone(over), to: device.key, call: id) }
    }
  }

  mutating func reaped(_ id: CallID, _ step: inout Step) {
    // Also for a call that has just ended here and waits for its last statistics.
    calls.change(id) { $0.conclusion.disown() }
    guard calls[id]?.isLive == true else { return }
    change(id, &step) { $0.end(.gatewayRestart, by: .gateway, detail: "closed by another node", &$1) }
  }

  // MARK: outgoing

  /// `call.start` has passed every check here: enters the client's UUID once in the cluster and checks the limits over all nodes.
  mutating func claim(_ starting: StartingCall, _ step: inout Step) {
    let call = starting.call
    let device = starting.device.key
    let trunk = call.trunk
    let isEmergency = routing.isEmergency(call.parties.calledNumber, of: device.user)
    let allowance = isEmergency ? nil : routing.user(device.user)?.allowance
    pending.waitForClaim(call.id, then: .outgoing(starting))
    step.output.actions.append(
      .claim(
        ClaimQuestion(
          call.id, device: device, trunk: trunk.name, mostOfTrunk: isEmergency ? nil : trunk.maximumCalls,
          mostOfUser: isEmergency ? configuration.bounds.calls : configuration.bounds.callsPerUser,
          mostOutgoing: allowance?.calls, mostPerHour: allowance?.callsPerHour)))
  }

  mutating func claimed(_ id: CallID, _ answer: ClaimAnswer, _ step: inout Step) {
    switch pending.popClaim(id) {
    case .originated(let call, let question): claimed(call, answer, question, &step)
    case .outgoing(let starting): claimed(starting, answer, &step)
    case nil: break
    }
  }

  private mutating func claimed(_ starting: StartingCall, _ answer: ClaimAnswer, _ step: inout Step) {
    let call = starting.call
    let request = starting.request
    let caller = call.wanted(by: starting.device.key)
    switch answer {
    case .granted where devices.isRevoked(starting.device.key):
      unclaim(call.id, &step)
      step.output.actions.append(.refused(Refusal(.forbidden, .outgoing, trunk: call.trunk.name, caller: caller)))
      step.answer(request, .err(.deviceRevoked()))
    case .granted:
      var starting = starting
      starting.call.trunkLeg.holdSlot(needsSlot(call.trunk))
      reserveMedia(starting, &step)
    case .atOtherNode(_, let url):
      step.answer(request, .err(Failure(.overload, msg: "the call is at another node", retryMs: 0, url: url)))
      step.output.actions.append(.refused(Refusal(.steered, .outgoing, trunk: call.trunk.name, caller: caller)))
    case .refused(.trunkLimit) where !call.trunkLeg.alternatives.isEmpty: claimNext(starting, &step)
    case .refused(let reason):
      let code: ErrorCode = reason == .userLimit || reason == .userRate ? .tooMany : .overload
      refuse(request, of: caller, StartRefusal(code, reason: reason, trunk: call.trunk.name), &step)
    }
  }

  /// The trunk is full over all nodes: claims the route's next one.
  private mutating func claimNext(_ starting: StartingCall, _ step: inout Step) {
    let call = starting.call
    var left = call.trunkLeg.alternatives
    let next = left.removeFirst()
    var again = starting
    again.call = Call(
      id: call.id, direction: .outgoing, session: call.session, users: call.users, parties: call.parties,
      trunkLeg: TrunkLeg(call.trunkLeg.id, over: next, session: call.session, alternatives: left), at: step.now)
    claim(again, &step)
  }
}

extension Call {
  /// The device that has this call lost its socket here and is at another node: wakes it there, so that it opens a further socket
  /// here.
  private func wakeWinner(through remote: RemoteDevice, _ step: inout Step) {
    guard isLive, remote.isWakeable, let index = winnerIndex, !devices[index].isConnected,
      let content = pushContent(for: remote.key, until: step.now, step)
    else { return }
    step.output.actions.append(.wake(remote.key, node: remote.node, content))
    step.statistics.wakesSent += 1
  }

  /// A device of the call's user connected to another node.
  mutating func came(_ remote: RemoteDevice, wantsCalls: Bool, _ step: inout Step) {
    if winner == remote.key { return wakeWinner(through: remote, &step) }
    guard isUndecided, ringsDevices, users.locating == nil, terminals[remote.key] == nil, remote.isWakeable,
      index(of: remote.key).map({ !devices[$0].isConnected }) ?? true
    else { return }
    if let effects = pushes.connected(elsewhere: remote, &step) { return perform(effects, &step) }
    guard wantsCalls, users.ringing.contains(remote.key.user), users.isFor(remote.accounts, of: remote.key.user),
      pushes.count < Limits.devicesPerCall
    else { return }
    perform(pushes.watch(remote.key, nil, remote: remote, &step), &step)
  }
}
