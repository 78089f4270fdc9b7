import AppProtocol
import AppSessions
import Bytes
import Devices
import MediaSession
import SDP
import SIP
import SIPDialogs

/// Calls where there are other nodes: before a call rings, the cluster is asked where its users' devices are and whether there is room.
/// Without `Configuration.isClustered` nothing is asked.
extension CallMachine {
  /// What a call that exists continues with once its users' devices are found.
  enum Found: Equatable {
    /// The users that a webhook named; media toward the caller is reserved then.
    case routed(toward: IPAddress)
    /// The user to which it is diverted.
    case diverted
  }

  // MARK: incoming

  /// Before there is a call: it may be steered to another node, and is no call then.
  mutating func locate(_ call: Call, user: String, toward: IPAddress, _ step: inout Step) {
    legs[call.trunkLeg.id] = call.id
    let question = question(call, mostOfTrunk: call.trunk.maximumCalls, mayRedirect: mayRedirect(call))
    pending[call.id] = .locating(call, user: user, toward: toward)
    step.output.actions.append(.locate(question))
  }

  /// A call that exists rings for other users.
  mutating func locate(_ id: CallID, then found: Found, _ step: inout Step) {
    guard let call = calls[id], call.isLive else { return }
    calls[id]?.users.locating = found
    // one whose webhook was asked is counted only now
    let most = call.trunkLeg.holdsSlot ? nil : call.trunk.maximumCalls
    step.output.actions.append(.locate(question(call, mostOfTrunk: most, mayRedirect: false)))
  }

  private func question(_ call: Call, mostOfTrunk: Int?, mayRedirect: Bool) -> LocateQuestion {
    let here = call.users.ringing.filter { presences[$0]?.contains(where: \.isConnected) ?? false }
    return LocateQuestion(
      call.id, users: call.users.ringing, trunk: call.trunk.name, mostOfTrunk: mostOfTrunk,
      mostOfUser: configuration.bounds.callsPerUser, mayRedirect: mayRedirect, connectedHere: Set(here))
  }

  /// Only an edge follows a redirect, and once for each INVITE: a carrier would bill it, or refuse it.
  private func mayRedirect(_ call: Call) -> Bool {
    call.intake.map { $0.invite.isFromEdge && !$0.invite.isSteered } ?? false
  }

  /// The cluster's answer, or the node's own for want of one.
  mutating func located(_ id: CallID, _ answer: Located, _ step: inout Step) {
    guard case .locating(var call, let user, let toward)? = pending[id] else { return locatedLive(id, answer, &step) }
    pending[id] = nil
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
      call.users.remoteDevices = remoteDevices
      call.trunkLeg.holdsSlot = needsSlot(call.trunk)
      guard isReachable(call, step.now) || call.diversions.rules.rules[.unreached] != nil else {
        if !isHeard, invite.isFromEdge, !isPresent(call, step.now) { return passOn(call, invite, &step) }
        return rejectUnreached(call, &step)
      }
      pending[id] = .incoming(call)
      step.output.actions.append(
        .reserveMedia(
          MediaRequest(
            id, session: call.session, user: user, others: call.users.ringing, toward: toward, asked: call.intake?.invite.source))
      )
    }
  }

  /// A device of its users is here, if only to say that it wants no calls.
  private func isPresent(_ call: Call, _ now: Instant) -> Bool {
    call.users.ringing.contains { presences[$0]?.contains { $0.isReachable(at: now) } ?? false }
  }

  /// This node does not know where the user is, and another one may have the device: the edge asks the next node. It is no call here. A carrier that
  /// dials us itself has no other node to ask.
  private mutating func passOn(_ call: Call, _ invite: InboundInvite, _ step: inout Step) {
    unclaim(call.id, &step)
    refuse(call.trunkLeg.id, invite, .unlocated, code: 503, &step)
  }

  private mutating func locatedLive(_ id: CallID, _ answer: Located, _ step: inout Step) {
    guard let call = calls[id], call.isLive, let found = call.users.locating else { return }
    calls[id]?.users.locating = nil
    switch answer {
    case .here(let remoteDevices, let registry, _):
      learn(registry, &step)
      calls[id]?.users.remoteDevices = remoteDevices
      let holdsSlot = needsSlot(call.trunk)
      calls[id]?.trunkLeg.holdsSlot = holdsSlot
    case .redirect: break  // was not to be: it rings where it is
    case .refused(let reason):
      return change(id, &step) { $0.end(.overload, by: .gateway, detail: reason.rawValue, &$1) }
    }
    switch found {
    case .routed(let toward): ringRouted(id, toward: toward, &step)
    case .diverted: ring(id, &step)
    }
  }

  /// The caller has given up while its users' devices were looked for: a call that never rang.
  mutating func cancelledWhileLocating(_ leg: LegID, _ cause: ReasonValue?, _ step: inout Step) -> Bool {
    guard let id = legs[leg], case .locating(let call, _, _)? = pending[id] else { return false }
    pending[id] = nil
    admit(call, &step)
    change(id, &step) { $0.cancelled(cause, &$1) }
    return true
  }

  /// What the shared store has of these users' devices; what this node was told later stays.
  private mutating func learn(_ registry: [String: [Device]], _ step: inout Step) {
    for (user, stored) in registry { devices.learn(stored, of: user, at: step.wallNow) }
  }

  /// Devices at other nodes that a call of these users is told of: those that are not here, too.
  func ringableRemoteDevices(_ call: Call) -> [RemoteDevice] {
    call.users.remoteDevices.filter { remote in
      call.users.ringing.contains(remote.key.user) && presence(remote.key)?.isConnected != true && devices.wantsCalls(remote.key)
        && call.users.isFor(remote.accounts, of: remote.key.user) && remote.isWakeable
    }
  }

  /// A device has come to another node: calls of its user that may ring there wake it through that node.
  mutating func remoteDeviceConnected(_ remote: RemoteDevice, _ step: inout Step) {
    if let index = presences[remote.key.user]?.firstIndex(where: { $0.key == remote.key && $0.isConnected }) {
      // a login here ends now, by the newer one; what a wake token began stays
      if presences[remote.key.user]?[index].info.onlyCall == nil {
        presences.change(index, of: remote.key.user) { $0.movedTo = remote }
      }
      return
    }
    let wantsCalls = devices.wantsCalls(remote.key)
    for id in callsOfUser[remote.key.user] ?? [] { change(id, &step) { $0.came(remote, wantsCalls: wantsCalls, &$1) } }
  }

  /// A call that the cluster knows of, and that became none.
  mutating func unclaim(_ id: CallID, _ step: inout Step) {
    if configuration.isClustered { step.output.actions.append(.unclaimed(id)) }
  }

  // MARK: nodes that die

  /// A call of another node, which is dead: its legs are closed by who says so, its record is written here.
  mutating func orphaned(_ line: StartLine, _ users: [String], _ step: inout Step) {
    guard calls[line.call] == nil, tombstones[line.call] == nil else { return }
    var record = CallRecord(orphan: line, at: step.wallNow)
    record.end.detail = "node lost"
    step.statistics.started[line.direction, default: [:]][line.trunk, default: 0] += 1
    step.statistics.ended[record.end.reason, default: [:]][record.end.by, default: 0] += 1
    step.output.actions.append(.record(record))
    insertTombstone(line.call, users, line.direction, wasPushed: true, &step)
    for user in users { sendLost(line.call, user, &step) }
  }

  /// Another node closed this user's call of a dead one.
  mutating func remoteCallLost(_ id: CallID, _ user: String, _ step: inout Step) {
    guard calls[id] == nil else { return }
    if tombstones[id] == nil {
      insertTombstone(id, [user], .incoming, wasPushed: false, &step)
    } else {
      tombstones.add(user, to: id)
    }
    sendLost(id, user, &step)
  }

  private mutating func insertTombstone(
    _ id: CallID, _ users: [String], _ direction: CallDirection, wasPushed: Bool, _ step: inout Step
  ) {
    let forgotten = tombstones.insert(
      Tombstone(
        users: users, direction: direction, owner: nil,
        over: CallOver(.gatewayRestart, by: .gateway, at: step.wallNow), terminals: [:], wasPushed: wasPushed,
        expires: step.now + configuration.timers.tombstone, isOfDeadNode: true), for: id)
    for id in forgotten { step.app(.wakesOver(id)) }
  }

  /// `call.gone` to the user's devices here: who was woken for the call, or had it, shows it still. Those that come later have it from `welcome`.
  private mutating func sendLost(_ id: CallID, _ user: String, _ step: inout Step) {
    for device in presences[user] ?? [] where device.isConnected {
      if let over = tombstones.popLost(id, device.key) { step.send(.callGone(over), to: device.key, call: id) }
    }
  }

  mutating func reaped(_ id: CallID, _ step: inout Step) {
    // Also of one that has ended here just now and waits for its last statistics.
    calls[id]?.bookkeeping.isDisowned = true
    guard calls[id]?.isLive == true else { return }
    change(id, &step) { $0.end(.gatewayRestart, by: .gateway, detail: "closed by another node", &$1) }
  }

  // MARK: outgoing

  /// `call.start` has passed every check here: the client's UUID is entered once in the cluster, and the limits of all nodes hold.
  mutating func claim(
    _ call: Call, _ offer: SessionDescription, _ device: DevicePresence, _ request: RequestToken, _ step: inout Step
  ) {
    let trunk = call.trunk
    let isEmergency = routing.isEmergency(call.parties.calledNumber, of: device.key.user)
    let allowance = isEmergency ? nil : routing.user(device.key.user)?.allowance
    pending[call.id] = .claiming(call, offer: offer, device, request)
    step.output.actions.append(
      .claim(
        ClaimQuestion(
          call.id, device: device.key, trunk: trunk.name, mostOfTrunk: isEmergency ? nil : trunk.maximumCalls,
          mostOfUser: isEmergency ? configuration.bounds.calls : configuration.bounds.callsPerUser,
          mostOutgoing: allowance?.calls, mostPerHour: allowance?.callsPerHour)))
  }

  mutating func claimed(_ id: CallID, _ answer: ClaimAnswer, _ step: inout Step) {
    if case .claimingOriginated(let call, let reported)? = pending[id] {
      pending[id] = nil
      return claimed(call, answer, reported, &step)
    }
    guard case .claiming(var call, let offer, let device, let request)? = pending[id] else { return }
    pending[id] = nil
    let caller = call.wanted(by: device.key)
    switch answer {
    case .granted where devices.isRevoked(device.key):
      unclaim(id, &step)
      step.output.actions.append(.refused(Refusal(.forbidden, .outgoing, trunk: call.trunk.name, caller: caller)))
      step.answer(request, .err(.deviceRevoked()))
    case .granted:
      call.trunkLeg.holdsSlot = needsSlot(call.trunk)
      pending[id] = .outgoing(call, offer: offer, device, request)
      step.output.actions.append(
        .reserveMedia(
          MediaRequest(id, session: call.session, user: device.key.user, toward: call.trunk.peer?.flow.remote.ip)))
    case .atOtherNode(_, let url):
      step.answer(request, .err(Failure(.overload, msg: "the call is at another node", retryMs: 0, url: url)))
      step.output.actions.append(.refused(Refusal(.steered, .outgoing, trunk: call.trunk.name, caller: caller)))
    case .refused(.trunkLimit) where !call.trunkLeg.alternatives.isEmpty: claimNext(call, offer, device, request, &step)
    case .refused(let reason):
      let code: ErrorCode = reason == .userLimit || reason == .userRate ? .tooMany : .overload
      refuse(request, caller, code, reason, trunk: call.trunk.name, nil, &step)
    }
  }

  /// All nodes together have the trunk full: the route's next.
  private mutating func claimNext(
    _ call: Call, _ offer: SessionDescription, _ device: DevicePresence, _ request: RequestToken, _ step: inout Step
  ) {
    var left = call.trunkLeg.alternatives
    let next = left.removeFirst()
    var again = Call(
      id: call.id, direction: .outgoing, session: call.session, users: call.users, parties: call.parties,
      trunkLeg: TrunkLeg(call.trunkLeg.id, over: next, session: call.session), at: step.now)
    again.trunkLeg.alternatives = left
    claim(again, offer, device, request, &step)
  }
}

extension Call {
  /// The device that has this call lost its socket here and is at another node: a further socket leads it back.
  private func wakeWinner(through remote: RemoteDevice, _ step: inout Step) {
    guard isLive, remote.isWakeable, let index = winnerIndex, !devices[index].isConnected,
      let content = pushContent(for: remote.key, until: step.now, step)
    else { return }
    step.output.actions.append(.wake(remote.key, node: remote.node, content))
    step.statistics.wakesSent += 1
  }

  /// A device of the call's user has come to another node.
  mutating func came(_ remote: RemoteDevice, wantsCalls: Bool, _ step: inout Step) {
    if winner == remote.key { return wakeWinner(through: remote, &step) }
    guard isUndecided, ringsDevices, users.locating == nil, terminals[remote.key] == nil, remote.isWakeable,
      index(of: remote.key).map({ !devices[$0].isConnected }) ?? true
    else { return }
    if let index = pushIndex(remote.key) {
      pushes[index].remote = remote
      guard pushes[index].isFresh || pushes[index].mayShow else { return }
      return wake(index, &step)
    }
    guard wantsCalls, users.ringing.contains(remote.key.user), users.isFor(remote.accounts, of: remote.key.user),
      pushes.count < Limits.devicesPerCall
    else { return }
    pushes.append(DevicePush(key: remote.key, target: nil, remote: remote, at: step.now))
    wake(pushes.count - 1, &step)
  }
}
