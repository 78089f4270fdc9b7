import Foundation
public import TrunklineBytes

/// Messages of the app's process.
extension PhoneModel {
  public mutating func receive(_ message: AppMessage, at now: Instant) -> [PhoneRequest] {
    let line = LogLine(message, now)
    switch message {
    case .launched:
      let orders = [PhoneRequest.send(.unlockedOnce(machine.isUnlockedOnce))] + give(.launched, line, at: now)
      return orders + (machine.isForeground ? [.send(.foreground(true))] : [])
    case .wantsPushes:
      log.append(line)
      return [.send(.token(token))]
    case .provider(let facts):
      self.facts = facts
      let kinds = Set(facts.handleTypes.compactMap { SystemMachine.HandleKind(rawValue: $0) })
      return give(.configure(groups: facts.maximumCallGroups, handleKinds: kinds), line, at: now)
    case .hasDelegate, .pushCompleted:
      log.append(line)
      return []
    case .invalidated: return give(.systemReset(.callServices), line, at: now)
    case .pushHandled(let push): return give(.pushHandled(.init(push)), line, at: now)
    case .report(let call, let caller, let isOnQueue):
      return give(isOnQueue ? .report(call, caller) : .reportOffQueue(call, caller), line, at: now)
    case .update(let call, let caller): return give(.update(call, updated(call, caller)), line, at: now)
    case .ended(let call, let reason, let date):
      dates[call, default: (nil, nil)].ended = date
      return give(.reportEnded(call, reason), line, at: now)
    case .connecting(let call, _): return give(.reportConnecting(call), line, at: now)
    case .connected(let call, let date):
      if let date { dates[call, default: (nil, nil)].connected = date }
      return give(.reportConnected(call), line, at: now)
    case .request(let id, let requests): return give(.request(.init(id), requests), line, at: now)
    case .complete(let id, let isFulfilled, let date): return complete(id, isFulfilled: isFulfilled, date: date, line: line, now)
    case .activatedItself(let isOn):
      if isOn { return give(.activatedAudioItself, line, at: now) }
      log.append(line)
      return []
    case .categorySet: return give(.categorySet, line, at: now)
    case .speaker(let isOn): return give(.speaker(isOn), line, at: now)
    case .extensionPush(let id, let payload, let isExtension):
      nextPush += 1
      let push = SystemMachine.PushID(nextPush)
      payloads[push] = payload
      extensionIDs[push] = id
      return give(.extensionPush(push, isExtension: isExtension), line, at: now)
    case .violation(let rule, let text):
      log.append(line)
      violations.append("\(rule.rawValue): \(text)")
      return []
    }
  }

  /// The process ended, by itself or by `kill`; no message is sent to it any longer.
  public mutating func exited(at now: Instant) -> [PhoneRequest] {
    give(.exited, LogLine(now, .app, "exited"), at: now).filter { if case .send = $0 { false } else { true } }
  }

  private mutating func complete(
    _ id: Int, isFulfilled: Bool, date: Date?, line: LogLine, _ now: Instant
  ) -> [PhoneRequest] {
    if isFulfilled, let date {
      switch performed[id] {
      case .answer(let call)?: dates[call, default: (nil, nil)].connected = date
      case .end(let call)?: dates[call, default: (nil, nil)].ended = date
      default: break
      }
    }
    if case .end(let call)? = performed.removeValue(forKey: id), machine.calls[call]?.phase == .ringing, !isFulfilled {
      declined.remove(call)
    }
    return give(.complete(.init(id), isFulfilled ? .fulfilled : .failed), line, at: now)
  }

  /// The caller after an update: fields that the update does not contain stay.
  private func updated(_ call: Identifier, _ caller: SystemMachine.Caller) -> SystemMachine.Caller {
    guard let known = machine.calls[call]?.caller else { return caller }
    var new = caller.handle.isEmpty ? known : caller
    new.name = caller.name ?? known.name
    return new
  }
}
