import AppSessions
public import Bytes
import Devices

/// The place of a live call among the others: the order in which they came.
public struct CallNumber: Hashable, Comparable, Sendable {
  let number: UInt64
  let call: CallID

  init(_ call: Call) { (number, self.call) = (call.session.raw, call.id) }

  public static func < (a: CallNumber, b: CallNumber) -> Bool { a.number < b.number }
}

/// A live call as the thread that owns it copies it: a value, whose summary is the work of whoever wanted to see it. Costs a copy of the call, about
/// two kilobytes and no strings or dictionaries made.
public struct CallRow: Sendable {
  private let call: Call
  private let group: [CallID]?
  private let wallOffset: Int64

  fileprivate init(_ call: Call, group: [CallID]?, wallOffset: Int64) {
    (self.call, self.group, self.wallOffset) = (call, group, wallOffset)
  }

  public var id: CallID { call.id }
  /// Of its trunk leg.
  public var sipCallId: String? { call.sipCallID }

  /// Any thread.
  public var summary: CallSummary {
    var summary = call.summary { $0.nanoseconds / 1_000_000 &+ wallOffset }
    summary.group = group
    return summary
  }
}

/// A part of the live calls, oldest first.
public struct CallPage: Sendable {
  public var rows: [CallRow] = []
  /// Behind which the next page begins; nil: this was the last.
  public var next: CallNumber?
  /// How many calls were looked at.
  public var looked = 0
  public init() {}
}

extension CallMachine {
  /// At most `most` live calls behind one, oldest first; nil: from the first. Looks at no other.
  public func callPage(after last: CallNumber?, most: Int) -> CallPage {
    var (page, walk) = (CallPage(), callOrder.walk(after: last))
    while let number = walk.next() {
      page.looked += 1
      if let row = callRow(number.call) { page.rows.append(row) }
      guard page.looked < most else {
        page.next = walk.peek() == nil ? nil : number
        break
      }
    }
    return page
  }

  /// Nil: there is no such live call.
  public func callRow(_ id: CallID) -> CallRow? {
    calls[id].map { call in
      CallRow(call, group: call.winner.flatMap { groupPeers(of: id, for: $0) }, wallOffset: wallOffset)
    }
  }

  /// Live calls, oldest first. O(calls): for tests; who serves others asks for pages.
  public var summaries: [CallSummary] { callPage(after: nil, most: .max).rows.map(\.summary) }

  /// Ids of the live calls, oldest first.
  public var liveCalls: [CallID] {
    var (out, walk) = ([CallID](), callOrder.walk(after: nil))
    while let number = walk.next() { out.append(number.call) }
    return out
  }
}

extension Call {
  /// Devices that were only pushed to so far.
  fileprivate var wokenDevices: [CallSummary.Device] {
    guard isUndecided else { return [] }
    return pushes.filter { $0.sentAt != nil && index(of: $0.key) == nil && terminals[$0.key] == nil }.map {
      .init(device: $0.key.device, state: $0.phase == .failed ? "notReached" : "pushed", ice: false, dtls: false, ready: false)
    }
  }

  func summary(_ wall: (Instant) -> Int64) -> CallSummary {
    let statistics = legs.first?.statistics
    var summary = CallSummary(
      call: id, sipCallId: sipCallID, direction: direction, state: state, trunk: trunk.name, from: parties.callerNumber,
      to: parties.calledNumber,
      user: users.owner,
      times: Dictionary(uniqueKeysWithValues: times.map { ($0.rawValue, wall($1)) }),
      devices: devices.map {
        let phase = $0.isDescribed && $0.phase != .winner ? "prepared" : "\($0.phase)"
        return .init(device: $0.key.device, state: phase, ice: $0.hasPair, dtls: $0.hasKeys, ready: $0.saidReady)
      } + wokenDevices, held: appMedia.isHeld, heldByTrunk: trunkLeg.isHoldSignalled, muted: appMedia.isMuted,
      fromTrunk: statistics.map { .init($0.fromTrunk) }, fromApp: statistics.map { .init($0.fromApp) })
    summary.appStats = winnerIndex.flatMap { devices[$0].stats }
    return summary
  }
}
