import AppSessions
public import CallModel
import Devices
import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineMediaSession

/// The position of a live call among the others, in the order of their start.
public struct CallNumber: Hashable, Comparable, Sendable {
  let number: UInt64
  let call: CallID

  init(_ call: Call) { (number, self.call) = (call.session.raw, call.id) }

  public static func < (a: CallNumber, b: CallNumber) -> Bool { a.number < b.number }
}

/// A copy of a live call, made by the thread that owns it, with the data of a summary; the thread that requested it makes the
/// summary. Costs the owner a dozen references; no string, list or dictionary is made.
public struct CallRow: Sendable {
  public let id: CallID
  /// Call-ID of its trunk leg.
  public let sipCallId: String?
  private let direction: CallDirection
  private let state: CallState
  private let (trunk, from, to, user): (String, String, String, String)
  private let times: [CallStage: Instant]
  private let devices: DeviceLegs
  private let pushes: DevicePushes
  private let terminals: Terminals
  private let (isUndecided, isHeld, isHeldByTrunk, isMuted): (Bool, Bool, Bool, Bool)
  private let silentSide: CallSide?
  private let measured: Measured?
  fileprivate let groupID: MediaGroupID?
  /// All calls of its group.
  fileprivate var group: [CallID]?
  private let parameters: CallParameters?
  private let wallOffset: Int64

  fileprivate var groupOwner: String? { groupID == nil ? nil : devices.winner?.user }

  /// `inout`, as a copy of the whole call would cost about a hundred references.
  fileprivate init(_ call: inout Call, wallOffset: Int64) {
    id = call.id
    (direction, state) = (call.direction, call.state)
    (sipCallId, trunk) = (call.legs[0].sipCallID, call.legs[0].trunk.name)
    (from, to, user) = (call.parties.callerNumber, call.parties.calledNumber, call.users.owner)
    (times, devices, pushes, terminals) = (call.times, call.devices, call.pushes, call.terminals)
    (isUndecided, isHeld, isMuted) = (call.isUndecided, call.audio.isHeld, call.audio.isMuted)
    (isHeldByTrunk, measured) = (call.legs[0].isHoldSignalled, call.legs[0].measured)
    (parameters, silentSide) = (call.parties.parameters, call.watch.silentSide)
    groupID = call.winner == nil ? nil : call.audio.group
    self.wallOffset = wallOffset
  }

  /// Any thread.
  public var summary: CallSummary {
    func wall(_ time: Instant) -> Int64 { time.nanoseconds / 1_000_000 &+ wallOffset }
    var summary = CallSummary(
      call: id, sipCallId: sipCallId, direction: direction, state: state, trunk: trunk, from: from, to: to, user: user,
      times: Dictionary(uniqueKeysWithValues: times.map { ($0.rawValue, wall($1)) }),
      devices: devices.map {
        let phase = $0.isDescribed && $0.phase != .winner ? "prepared" : "\($0.phase)"
        return .init(device: $0.key.device, state: phase, ice: $0.hasPair, dtls: $0.hasKeys, ready: $0.saidReady)
      } + wokenDevices, held: isHeld, heldByTrunk: isHeldByTrunk, muted: isMuted,
      fromTrunk: measured.map { .init($0.statistics.fromTrunk) }, fromApp: measured.map { .init($0.statistics.fromApp) })
    summary.group = group?.filter { $0 != id }
    summary.parameters = parameters
    summary.silent = silentSide
    summary.appStats = devices.first { $0.key == devices.winner }.flatMap(\.stats)
    return summary
  }

  /// Devices that were only pushed to so far.
  private var wokenDevices: [CallSummary.Device] {
    guard isUndecided else { return [] }
    return pushes.sent.filter { push in
      !devices.contains { $0.key == push.key } && terminals[push.key] == nil
    }.map {
      .init(device: $0.key.device, state: $0.hasFailed ? "notReached" : "pushed", ice: false, dtls: false, ready: false)
    }
  }
}

/// A part of the live calls, oldest first.
public struct CallPage: Sendable {
  public var rows: [CallRow] = []
  /// The cursor after which the next page begins; nil: this was the last.
  public var next: CallNumber?
  /// Number of calls that were visited.
  public var looked = 0
  public init() {}
}

extension CallMachine {
  /// At most `most` live calls after `last`, oldest first; nil: from the first. Visits no others, except the calls of users with
  /// groups, which count. Changes nothing: it is `mutating` so that calls are read in place.
  public mutating func callPage(after last: CallNumber?, most: Int) -> CallPage {
    var (page, walk, groups) = (CallPage(), calls.walk(after: last), [String: [MediaGroupID: [CallID]]]())
    page.rows.reserveCapacity(min(most, calls.count))
    while let number = walk.next() {
      page.looked += 1
      if let row = callRow(number.call, &groups, &page.looked) { page.rows.append(row) }
      guard page.looked < most else {
        page.next = walk.peek() == nil ? nil : number
        break
      }
    }
    return page
  }

  /// Nil: there is no such live call. Changes nothing, as `callPage`.
  public mutating func callRow(_ id: CallID) -> CallRow? {
    var (groups, looked) = ([String: [MediaGroupID: [CallID]]](), 0)
    return callRow(id, &groups, &looked)
  }

  /// - Parameter groups: by user, those that were found before.
  private mutating func callRow(
    _ id: CallID, _ groups: inout [String: [MediaGroupID: [CallID]]], _ looked: inout Int
  ) -> CallRow? {
    let offset = wallOffset
    guard var row = calls.read(id, { CallRow(&$0, wallOffset: offset) }) else { return nil }
    guard let group = row.groupID, let user = row.groupOwner else { return row }
    if groups[user] == nil {
      let all = calls.ids(of: user)
      looked += all.count
      groups[user] = Dictionary(grouping: all.filter { calls[$0]?.audio.group != nil }) { calls[$0]?.audio.group ?? group }
    }
    row.group = groups[user]?[group] ?? [id]
    return row
  }

  /// Live calls, oldest first. O(calls), and a copy of all: for tests. Everything else requests pages.
  public var summaries: [CallSummary] {
    var copy = self
    return copy.callPage(after: nil, most: .max).rows.map(\.summary)
  }

  /// Ids of the live calls, oldest first.
  public var liveCalls: [CallID] {
    var (out, walk) = ([CallID](), calls.walk(after: nil))
    while let number = walk.next() { out.append(number.call) }
    return out
  }
}
