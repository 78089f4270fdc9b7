import AppSessions
import CallModel
import TrunklineAppProtocol

/// Queries for the end of other nodes' calls, and who waits for each answer.
///
/// | input | effect |
/// |---|---|
/// | `wait`, the call is not being queried | `ask`: the reader waits for the answer to a new query; `full`: too many are open |
/// | `wait`, it is | `wait`: the reader waits with the others; `full`: too many do |
/// | `remove` | the readers in their order, once; without a query: none |
struct TombstoneQueries {
  /// A recipient of the answer.
  enum Reader {
    /// A session that a wake token began: its `welcome` is not sent yet.
    case welcome(DeviceKey, SessionID)
    case request(DeviceKey, RequestToken, ClientMessage)
    /// `POST …/reject`.
    case reject(HTTPRequestID, DeviceKey)
    /// A session that existed already when the device's wake token arrived.
    case session(DeviceKey)
  }
  enum Wait { case ask, wait, full }

  private var readers: [CallID: [Reader]] = [:]

  mutating func wait(_ reader: Reader, for id: CallID) -> Wait {
    guard let waiting = readers[id] else {
      guard readers.count < Limits.askedTombstones else { return .full }
      readers[id] = [reader]
      return .ask
    }
    guard waiting.count < Limits.tombstoneReaders else { return .full }
    readers[id]?.append(reader)
    return .wait
  }

  mutating func remove(_ id: CallID) -> [Reader] { readers.removeValue(forKey: id) ?? [] }
}
