import AppSessions
import CallModel
import Devices
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Events of calls, devices and trunks for programs outside the gateway, if `Configuration.events` is on.
extension Call {
  /// Reports a stage of the call, if it has an event.
  mutating func report(_ stage: CallStage, at instant: Instant, _ step: inout Step) {
    switch stage {
    case .trunkSilent, .appSilent, .trunkBack, .appBack:
      // the statistics may have reported it first
      let isPoor = stage == .trunkSilent || stage == .appSilent
      guard watch.becomes(poor: isPoor) else { return }
    default: break
    }
    guard step.configuration.events.isOn, let kind = GatewayEvent.Kind(stage) else { return }
    let (transfer, diversion) = (transfers.made.last, diversions.made.last)
    report(kind, at: instant, &step) { facts in
      switch stage {
      case .heldByTrunk, .resumedByTrunk: facts.by = .trunk
      case .heldByApp, .resumedByApp: facts.by = .app
      case .transferred: facts.transfer = transfer
      case .diverting: facts.diversion = diversion
      case .trunkSilent: facts.quality = .init(level: .poor, cause: .silence, side: .trunk)
      case .trunkBack: facts.quality = .init(level: .good, side: .trunk)
      case .appSilent: facts.quality = .init(level: .poor, cause: .silence, side: .app)
      case .appBack: facts.quality = .init(level: .good, side: .app)
      default: break
      }
    }
  }

  /// Reports pressed digits; the app's when they are requested, before they are sent.
  func reportDigits(_ digits: String, from side: CallSide, _ step: inout Step) {
    guard step.configuration.events.hasDigits else { return }
    report(.callDigits, at: step.now, &step) { $0.digits = .init(digits: digits, from: side) }
  }

  /// Reports when the audio becomes poor, and when it no longer is.
  mutating func reportQuality(_ quality: Quality, _ statistics: MediaStatistics, _ step: inout Step) {
    let isPoor = quality.level == "poor"
    guard watch.becomes(poor: isPoor) else { return }
    let scores = [statistics.fromTrunk.meanOpinionScore, statistics.fromApp.meanOpinionScore].compactMap { $0 }
    report(.callQuality, at: step.now, &step) {
      $0.quality = .init(
        level: isPoor ? .poor : .good, cause: isPoor ? quality.cause.flatMap { .init(rawValue: $0) } : nil,
        side: isPoor ? watch.silentSide : nil, mos: scores.min().map { ($0 * 100).rounded() / 100 })
    }
  }

  func report(
    _ kind: GatewayEvent.Kind, at instant: Instant, _ step: inout Step, _ fill: (inout CallEventFacts) -> Void = { _ in }
  ) {
    guard step.configuration.events.isOn else { return }
    var facts = facts
    fill(&facts)
    step.output.actions.append(.event(GatewayEvent(kind, at: step.wall(instant), .call(facts))))
  }

  var facts: CallEventFacts {
    var out = CallEventFacts(
      call: id, sipCallId: sipCallID, direction: direction, trunk: trunk.name, from: parties.callerNumber,
      to: parties.calledNumber, user: users.owner.isEmpty ? nil : users.owner, device: winner?.device)
    out.peer = parties.peer
    out.parameters = parties.parameters
    return out
  }
}

extension CallMachine {
  func report(_ kind: GatewayEvent.Kind, _ key: DeviceKey, _ step: inout Step) {
    guard configuration.events.isOn else { return }
    let facts = DeviceFacts(user: key.user, device: key.device, platform: devices[key]?.platform)
    step.output.actions.append(.event(GatewayEvent(kind, at: step.wallNow, .device(facts))))
  }

  /// Reports when a trunk becomes usable or unusable; called after each news of the trunk.
  mutating func reportTrunk(_ name: String, _ step: inout Step) {
    guard configuration.events.isOn, routing.trunk(name) != nil else { return }
    var status = trunkHealth.status(name, at: step.now, wallOffset: wallOffset)
    if trunkCapacity.isDisabled(name) { status.mark(.disabled) }
    guard trunkHealth.report(status) else { return }
    let facts = TrunkFacts(trunk: name, why: status.why?.rawValue)
    step.output.actions.append(.event(GatewayEvent(status.up ? .trunkUp : .trunkDown, at: step.wallNow, .trunk(facts))))
  }
}
