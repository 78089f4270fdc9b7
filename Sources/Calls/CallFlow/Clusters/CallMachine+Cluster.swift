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
    legs[call.trunkLeg.id] = call.id
    let question = question(call, mostOfTrunk: call.trunk.maximumCalls, mayRedirect: mayRedirect(call))
    pending[call.id] = .locating(call, user: user, toward: toward)
    step.output.actions.append(.locate(question))
  }

  /// Locates the devices of further users of an existing call.
  mutating func locate(_ id: CallID, then found: Found, _ step: inout Step) {
    guard let call = calls[id], call.isLive else { return }
    calls[id]?.users.locating = found
    // a call that a webhook routes is counted only now
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

  /// Handles the cluster's answer, or the node's own if there was none.
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

  /// A device of the call's users is connected here, even if it accepts no calls.
  private func isPresent(_ call: Call, _ now: Instant) -> Bool {
    call.users.ringing.contains { presences[$0]?.contains { $0.isReachable(at: now) } ?? false }
  }

  /// Refuses a call of an edge if the user's location is not known here: another node may have the device, and the edge tries the
  /// next one. No call exists here. A carrier that dials us directly has no other node to try.
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
    guard let id = legs[leg], case .locating(let call, _, _)? = pending[id] else { return false }
    pending[id] = nil
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
      call.users.ringing.contains(remote.key.user) && presence(remote.key)?.isConnected != true && devices.wantsCalls(remote.key)
        && call.users.isFor(remote.accounts, of: remote.key.user) && remote.isWakeable
    }
  }

  /// A device connected to another node: calls of its user that may ring there wake it through that node.
  mutating func remoteDeviceConnected(_ remote: RemoteDevice, _ step: inout Step) {
    if let index = presences[remote.key.user]?.firstIndex(where: { $0.key == remote.key && $0.isConnected }) {
      // the newer login ends the one here; a session that a wake token began stays
      if presences[remote.key.user]?[index].info.onlyCall == nil {
        presences.change(index, of: remote.key.user) { $0.movedTo = remote }
      }
      return
    }
    let wantsCalls = devices.wantsCalls(remote.key)
    for id in callsOfUser[remote.key.user] ?? [] { change(id, &step) { $0.came(remote, wantsCalls: wantsCalls, &$1) } }
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
    insertTombstone(line.call, users, line.direction, wasPushed: true, &step)
    for user in users { sendLost(line.call, user, &step) }
  }

  /// Another node closed a dead node's call of this user.
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

  /// Sends `call.gone` to the user's devices here: those that were woken for the call, or had it, still show it. Those that
  /// connect later get it from `welcome`.
  private mutating func sendLost(_ id: CallID, _ user: String, _ step: inout Step) {
    for device in presences[user] ?? [] where device.isConnected {
      if let over = tombstones.popLost(id, device.key) { step.send(.callGone(over), to: device.key, call: id) }
    }
  }

  mutating func reaped(_ id: CallID, _ step: inout Step) {
    // Also for a call that has just ended here and waits for its last statistics.
    calls[id]?.bookkeeping.isDisowned = true
    guard calls[id]?.isLive == true else { return }
    change(id, &step) { $0.end(.gatewayRestart, by: .gateway, detail: "closed by another node", &$1) }
  }

  // MARK: outgoing

  /// `call.start` has passed every check here: enters the client's UUID once in the cluster and checks the limits over all nodes.
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

  /// The trunk is full over all nodes: claims the route's next one.
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
