import Foundation
import LineFiles
import Synchronization
import TrunklinePlatform

/// The writing side of the event journal: append-only files in their own folder. Blocks; one thread.
///
///     let journal = try EventJournal(folder: "/var/lib/trunkline/trunkline.db.events")
///     try journal.append([.init(at: now, kind: "call.started", subject: call, json: { cursor in … })])
///
/// Events for which `append` has returned survive the death of the process; the operating system writes them to the disk within
/// seconds. At most `Limits.journalBytes` (64 MiB) and `Limits.age` (24 h) are kept: the oldest are removed. Readers
/// (`EventReader`) do not affect this.
public final class EventJournal: Sendable {
  public struct Entry: Sendable {
    public var at: Int64
    public var kind: String
    public var subject: String
    /// The event as JSON without line breaks, for its assigned id.
    public var json: @Sendable (EventCursor) throws -> [UInt8]
    public init(at: Int64, kind: String, subject: String, json: @escaping @Sendable (EventCursor) throws -> [UInt8]) {
      (self.at, self.kind, self.subject, self.json) = (at, kind, subject, json)
    }
  }

  static let name = "the event journal"
  public let epoch: String
  private let files: Mutex<EventSegments>
  /// The position of the last event; 0: there is none yet.
  public var last: UInt64 { files.withLock { $0.last } }
  /// Octets on disk.
  public var bytes: Int { files.withLock { $0.bytes } }

  /// Opens or makes the folder, readable by its owner only, and removes an incomplete last line that a dying process left.
  public convenience init(folder: String) throws {
    try self.init(folder: folder, mostBytes: Limits.journalBytes, segmentBytes: Limits.segmentBytes)
  }

  init(folder path: String, mostBytes: Int, segmentBytes: Int) throws {
    let folder = EventFolder(path: path)
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw AppendLogError("cannot make", name: Self.name, path: path) }
    if let known = folder.epoch() {
      epoch = known
    } else {
      epoch = String((0..<8).map { _ in "0123456789abcdef".randomElement() ?? "0" })
      // positions of a former epoch must not be confused with those of this one
      for segment in folder.segments() { unlink(segment.path) }
      do { try Data((epoch + "\n").utf8).write(to: URL(fileURLWithPath: path + "/epoch"), options: .atomic) } catch {
        throw AppendLogError("cannot write", name: Self.name, path: path)
      }
    }
    files = Mutex(try EventSegments(folder, epoch: epoch, mostBytes: mostBytes, segmentBytes: segmentBytes))
  }

  /// All or nothing: after an error the same entries get the same positions in the next attempt. An event that is too long or
  /// cannot be encoded is left out. Returns the number of events written.
  @discardableResult public func append(_ entries: [Entry]) throws -> Int { try files.withLock { try $0.append(entries) } }

  /// Removes segments beyond the bounds, the oldest first, never the current one. Returns the first remaining position.
  @discardableResult public func trim(now: Int64) -> UInt64 { files.withLock { $0.trim(now: now) } }
}

/// The files of a journal, of which the last one is written.
private struct EventSegments: ~Copyable {
  let epoch: String
  /// The position of the last event; 0: there is none yet.
  private(set) var last: UInt64 = 0
  /// Octets on disk.
  private(set) var bytes = 0
  private let folder: EventFolder
  /// The newest segment; nil: there is none yet.
  private var current: AppendLog?
  private var segments: [EventFolder.Segment] = []
  private let mostBytes: Int
  private let segmentBytes: Int

  init(_ folder: EventFolder, epoch: String, mostBytes: Int, segmentBytes: Int) throws {
    (self.folder, self.epoch) = (folder, epoch)
    (self.mostBytes, self.segmentBytes) = (mostBytes, segmentBytes)
    segments = folder.segments()
    if let newest = segments.last {
      let log = try AppendLog(path: newest.path, named: EventJournal.name, mode: 0o600)
      segments[segments.count - 1].bytes = log.size
      current = consume log
      last = SegmentReader.lastPosition(in: newest.path) ?? newest.first - 1
    }
    bytes = segments.reduce(0) { $0 + $1.bytes }
  }

  mutating func append(_ entries: [EventJournal.Entry]) throws -> Int {
    var text: [UInt8] = []
    var next = last
    for entry in entries {
      let cursor = EventCursor(epoch: epoch, position: next + 1)
      guard let json = try? entry.json(cursor), json.count <= Limits.eventBytes, !json.contains(0x0a) else { continue }
      next += 1
      text += StoredEvent(position: next, at: entry.at, kind: entry.kind, subject: entry.subject, json: json).line
    }
    guard next > last else { return 0 }
    let isFull = segments.last.map { $0.bytes > 0 && $0.bytes + text.count > segmentBytes } ?? true
    if isFull { try begin(last + 1) }
    try current?.append(text)
    bytes += text.count
    segments[segments.count - 1].bytes += text.count
    defer { last = next }
    return Int(next - last)
  }

  mutating func trim(now: Int64) -> UInt64 {
    while segments.count > 1 {
      let isOld = segments[0].changed < now - Limits.age.milliseconds
      guard bytes > mostBytes - segmentBytes || isOld else { break }
      unlink(segments[0].path)
      bytes -= segments[0].bytes
      segments.removeFirst()
    }
    return segments.first?.first ?? last + 1
  }

  /// Starts a segment. No published event is lost: the old file is closed after its last line is complete.
  private mutating func begin(_ first: UInt64) throws {
    let path = folder.path(of: first)
    current = try AppendLog(path: path, named: EventJournal.name, mode: 0o600, isEmptied: true)
    if let last = segments.indices.last { segments[last].changed = WallClock.nowMilliseconds() }
    segments.append(.init(first: first, path: path, bytes: 0, changed: WallClock.nowMilliseconds()))
  }
}
