import AppSessions
import CallFlow
import Cluster
import Devices
import PushPolicy
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// The cluster machine beside the two others: it is notified of what happens to devices and calls here, and its reports of other
/// nodes return as inputs. The shell performs the rest: requests to the shared store, probes, and reports on this node's own
/// state.
extension GatewayCore {
  /// Notifies the cluster machine of an input of the call machine that concerns the other nodes.
  mutating func notifyCluster(_ input: CallMachine.Input, at now: Instant) {
    guard cluster != nil else { return }
    switch input {
    // A session that is not resumed was reported when it connected: `waits`.
    case .app(.connected(let key, let session, let info, resumed: true)) where !info.isFurther:
      cluster(.deviceChanged(key, session, info), at: now)
    case .app(.disconnected(let key, let session)): cluster(.deviceLeft(key, session), at: now)
    case .app(.upgraded(let key, let session, let info)) where !info.isFurther:
      cluster(.deviceChanged(key, session, info), at: now)
    case .app(.stateChanged(let key, _)):
      if let (session, info) = machine.session(of: key), !info.isFurther { cluster(.deviceChanged(key, session, info), at: now) }
    case .draining: cluster(.draining, at: now)
    case .routing: sendGrantRules(at: now)
    default: break
    }
  }

  /// A device's connect or HTTP request waits until the cluster has reported whether another node revoked the device; without an
  /// answer for `ClusterMachine.Settings.wait` the state known here decides.
  mutating func waits(_ input: CallMachine.Input, at now: Instant) -> Bool {
    guard cluster != nil, case .app(let event) = input else { return false }
    switch event {
    case .granted(let key, let session, _) where machine.session(of: key)?.0 != session:
      coming[session, default: []].append(input)
    case .connected(let key, let session, let info, resumed: false):
      guard !machine.devices.isRevoked(key) else {
        coming[session] = nil
        return false
      }
      coming[session, default: []].append(input)
      cluster(.deviceCame(key, session, info), at: now)
    case .httpLogin(let request, let key):
      guard !machine.devices.isRevoked(key) else { return false }
      cluster(.sessionState(request, key), at: now)
    case .disconnected(_, let session), .ended(_, let session):
      coming[session] = nil
      return false
    default: return false
    }
    return true
  }

  private mutating func learn(_ key: DeviceKey, _ registration: Device?, isRevoked: Bool) {
    if isRevoked {
      pending.append(.devices(.revokedRemotely(key)))
    } else if let registration {
      pending.append(.devices(.registered(registration)))
    }
  }

  /// Sends the call machine's question or notification to the cluster machine. True: no other component needs the action.
  mutating func notifyCluster(_ action: CallMachine.Action, at now: Instant) -> Bool {
    switch action {
    case .locate(let question): cluster(.locate(question), at: now)
    case .claim(let question): cluster(.claim(question), at: now)
    case .admit(let call, let trunk, let most): cluster(.admit(call, trunk: trunk, most: most), at: now)
    case .released(let call, let trunk): cluster(.released(call, trunk: trunk), at: now)
    case .trunkNews:
      sendTroubles(at: now)
      return false
    case .askTombstone(let call): cluster(.tombstone(call), at: now)
    case .unclaimed(let call): cluster(.ended(call, over: nil), at: now)
    case .wake(let key, let node, let content):
      if let wake = CallWake(json: content.wakeContent) { cluster(.wake(wake, key, node: node), at: now) }
    case .shareGrants(let grants): cluster(.grants(grants), at: now)
    case .restoreGrants(let batch): cluster(.restoreGrants(batch), at: now)
    case .grantsCompared: cluster(.grantsCompared, at: now)
    case .staleGrants(let digest):
      cluster(.staleGrants(digest), at: now)
      return false
    case .devices(let changes):
      cluster(.devices(changes), at: now)
      return false
    case .record(let record):
      cluster(.ended(record.call, over: machine.overOfWoken(record.call)), at: now)
      guard cluster?.isEndUnconfirmed(record.call) == true else { return false }
      heldRecords[record.call] = record
    case .app(.revoke(let key)):
      if isRevoking { cluster(.revoke(key), at: now) }
      return false
    default: return false
    }
    return true
  }

  private mutating func sendGrantRules(at now: Instant) {
    let rules = machine.grantRules
    guard rules != grantRules else { return }
    grantRules = rules
    cluster(.sharesGrants(rules != nil), at: now)
  }

  /// Sends the troubles of the trunks that this node leads.
  mutating func sendTroubles(at now: Instant) { cluster(.troubles(machine.trunkTroubles.mapValues(\.rawValue)), at: now) }

  mutating func probe(_ incarnation: Incarnation, uri: String, over flow: Flow, at now: Instant, into output: inout Output) {
    let id = nextProbe()
    probes[id] = incarnation
    let peer = TrunkPeer(name: Self.probeTrunk, domain: flow.remote.description, flow: flow)
    let request = OutboundRequest(
      trunk: peer, method: .options, uri: uri, to: uri, callID: "probe-\(id.raw)-\(incarnation)")
    signal(.command(.request(id, request)), at: now, into: &output)
  }

  /// No trunk has this name: it contains a blank.
  private static var probeTrunk: String { "other nodes" }

  mutating func cluster(_ input: ClusterMachine.Input, at now: Instant) { cluster?.handle(input, at: now, into: &clustered) }

  /// Performs the actions of the cluster machine; sends it no input.
  mutating func drainCluster(at now: Instant, into output: inout Output) {
    guard !clustered.actions.isEmpty else { return }
    for action in clustered.actions {
      switch action {
      case .located(let call, let answer): pending.append(.located(call, answer))
      case .claimed(let call, let answer): pending.append(.claimed(call, answer))
      case .tombstone(let call, let found): pending.append(.tombstone(call, found))
      case .remote(let event): pending.append(.remote(event))
      case .welcome(let key, let session, let registration, let isRevoked):
        learn(key, registration, isRevoked: isRevoked)
        pending += coming.removeValue(forKey: session) ?? []
      case .sessionState(let request, let key, let registration, let isRevoked):
        learn(key, registration, isRevoked: isRevoked)
        pending.append(.app(.httpLogin(request, key)))
      case .revoked(let key): pending.append(.devices(.revokedRemotely(key)))
      case .revokedBefore(let key, let time): pending.append(.devices(.revokedBefore(key, time)))
      case .wakeHere(let key, let wake):
        output.effects.append(.action(.app(.send(key, .callWake(wake), call: wake.call))))
      case .replaced(let key, let session): output.effects.append(.action(.app(.replace(key, session))))
      case .orphan(let entry, _): pending.append(.orphaned(entry.line, users: entry.users))
      case .reaped(let calls):
        for call in calls {
          if heldRecords.removeValue(forKey: call) != nil {
            output.effects.append(.action(.disowned(call)))
          } else {
            // Before a timer that waits, and would end it with a record.
            pending.insert(.reaped(call), at: next)
          }
        }
      case .recordsDue(let calls):
        for call in calls {
          if let record = heldRecords.removeValue(forKey: call) { output.effects.append(.action(.record(record))) }
        }
      case .lead(let task, let isOurs):
        if case .trunk(let name) = task { pending.append(.trunking(.duty(trunk: name, isOurs))) }
        output.effects.append(.cluster(action))
      case .admitted(let call, let trunk, let isAdmitted): pending.append(.admitted(call, trunk: trunk, isAdmitted))
      case .clock(let offset):
        knowsSharedStoreClock = true
        signal(.sharedClock(offsetMilliseconds: offset), at: now, into: &output)
      case .grants(let grants): pending.append(.sharedGrants(grants))
      case .grantsRestored(let users, let hasFailed): pending.append(.grantsRestored(users: users, hasFailed: hasFailed))
      case .grantsUncertain(let isUncertain): pending.append(.grantsUncertain(isUncertain))
      case .nodes(let count): pending.append(.nodes(count))
      case .troubles(let troubles):
        pending.append(.trunking(.reported(troubles.mapValues { TrunkStatus.Trouble(rawValue: $0) ?? .notAnswering })))
      case .sharedStore, .probe, .close, .reapedBefore, .forgotten, .nameInUse, .incompatible, .state, .news:
        output.effects.append(.cluster(action))
      }
    }
    clustered.removeAll()
  }
}

extension RequestOutcome {
  /// The state of the probed process after an OPTIONS. A connection that was accepted and closed was accepted by a living node
  /// that does not know our address yet and drops us as a stranger. A request that could not be sent for another reason, or had
  /// no answer, proves nothing: a silent node is reported when the time of its probe is over.
  var probed: ProbeResult? {
    if isResponse || peer == .closed { return .answered }
    return peer == .refused ? .refused : nil
  }
}
