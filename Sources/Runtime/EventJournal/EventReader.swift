import Foundation
import LineFiles
import Synchronization

/// The reading side: events after a position, in order, while another thread writes. Blocks for data that is not in memory; one
/// thread.
///
///     let reader = EventReader(folder: folder)
///     let (events, isGap) = reader.read(after: position, most: 100)
public final class EventReader: Sendable {
  private let folder: EventFolder
  private let segment: Mutex<SegmentReader>

  public init(folder path: String) {
    folder = EventFolder(path: path)
    segment = Mutex(SegmentReader(EventFolder(path: path)))
  }

  public var epoch: String? { folder.epoch() }

  /// The oldest stored position, and the newest: (1, 0) if there is none. Reads the end of the journal only, `Limits.readBytes`
  /// at most.
  public var range: (oldest: UInt64, newest: UInt64) {
    let all = folder.segments()
    guard let oldest = all.first, let last = all.last else { return (1, 0) }
    return (oldest.first, max(last.first - 1, SegmentReader.lastPosition(in: last.path) ?? 0))
  }

  /// At most `most` events and about `Limits.readBytes` (256 KiB) after `after`. `isGap`: some of those between are no longer
  /// stored.
  public func read(after: UInt64, most: Int) -> (events: [StoredEvent], isGap: Bool) {
    var (after, isGap) = (after, false)
    while true {
      let look = look(after: after, most: most, entries: most) { _, _ in true }
      isGap = isGap || look.isGap
      if !look.events.isEmpty || look.looked == 0 { return (look.events, isGap) }
      after = look.after
    }
  }

  /// The result of a scan of some entries of the journal.
  public struct Look: Sendable {
    public var events: [StoredEvent] = []
    /// The last entry that was read.
    public var after: UInt64
    public var looked = 0
    /// Some after the last one are no longer stored.
    public var isGap = false
  }

  /// Scans at most `entries` entries after `after`, and about `Limits.readBytes` of them, until `most` of them fit. `looked` is 0
  /// if there are no more. Nothing is copied of an entry that does not fit. Costs some milliseconds at most, whatever fits.
  public func look(after: UInt64, most: Int, entries: Int, fits: (_ kind: String, _ subject: String) -> Bool) -> Look {
    segment.withLock { $0.look(after: after, most: most, entries: entries, fits: fits) }
  }
}

/// The open segment, and how far it was read.
struct SegmentReader: ~Copyable {
  private let folder: EventFolder
  private var lines = LineReader(lineBytes: Limits.readBytes)
  /// Of the open segment.
  private var first: UInt64 = 0
  /// The last event that was read.
  private var position: UInt64 = 0

  init(_ folder: EventFolder) { self.folder = folder }

  /// The position of a segment's last complete line; nil: it has none.
  static func lastPosition(in path: String) -> UInt64? {
    var file = LineReader(lineBytes: Limits.readBytes)
    guard file.open(path), let status = file.status else { return nil }
    // No line is as long: the last complete one, and the end of the one before it, are in these octets.
    let octets = file.octets(at: max(0, Int64(status.st_size) - Int64(Limits.readBytes)), count: Limits.readBytes)
    guard let end = octets.lastIndex(of: 0x0a) else { return nil }
    let start = octets[..<end].lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
    return position(of: octets[start..<end])
  }

  mutating func look(after: UInt64, most: Int, entries: Int, fits: (_ kind: String, _ subject: String) -> Bool)
    -> EventReader.Look
  {
    var look = EventReader.Look(after: after)
    if !lines.isOpen || after != position, !find(after) { return look }
    look.isGap = position > after
    var octets = 0
    while look.events.count < most, look.looked < entries, look.looked == 0 || octets < Limits.readBytes {
      switch lines.next() {
      case .line(let text):
        octets += text.count
        guard let line = EventLine(text) else { continue }
        position = line.position
        guard line.position > after else { continue }
        (look.looked, look.after) = (look.looked + 1, line.position)
        if fits(line.kind, line.subject) { look.events.append(line.event) }
      case .tooLong: continue
      case .end:
        let before = position
        guard look.looked == 0, openNext() else { return look }
        look.isGap = look.isGap || position > before
      }
    }
    return look
  }

  /// Opens the segment that contains the event after `after`, or else the oldest later one, and finds the position in it in a few
  /// reads.
  private mutating func find(_ after: UInt64) -> Bool {
    let all = folder.segments()
    guard let segment = all.last(where: { $0.first <= after + 1 }) ?? all.first, open(segment) else { return false }
    guard position < after else { return true }
    lines.seek(lastLine(at: after))
    while true {
      let offset = lines.offset
      switch lines.next() {
      case .line(let line):
        let number = Self.position(of: line) ?? 0
        guard number <= after else {
          lines.seek(offset)
          return true
        }
        position = max(position, number)
      case .tooLong: continue
      case .end: return true
      }
    }
  }

  /// The offset of a line at or before this position, at most `Limits.readBytes` before the first line after it: positions grow,
  /// so a binary search finds it.
  private func lastLine(at after: UInt64) -> Int64 {
    var (low, high) = (Int64(0), Int64(lines.status?.st_size ?? 0))
    while high - low > Int64(Limits.readBytes) {
      let middle = low + (high - low) / 2
      let chunk = lines.octets(at: middle, count: Limits.readBytes)
      // A line is shorter than a chunk: one begins here, unless this is the end.
      guard let first = chunk.firstIndex(of: 0x0a), let number = Self.position(of: chunk[(first + 1)...]), number <= after else {
        high = middle
        continue
      }
      low = middle + Int64(first + 1)
    }
    return low
  }

  /// The position of a line, which may be incomplete; nil: it has none.
  private static func position(of line: ArraySlice<UInt8>) -> UInt64? {
    line.firstIndex(of: 0x20).flatMap { UInt64(String(decoding: line[..<$0], as: UTF8.self)) }
  }

  private mutating func open(_ segment: EventFolder.Segment) -> Bool {
    guard lines.open(segment.path) else { return false }
    (first, position) = (segment.first, segment.first - 1)
    return true
  }

  /// Opens the next segment, if there is one: then this one grows no longer, and was read completely.
  private mutating func openNext() -> Bool {
    guard let segment = folder.segments().first(where: { $0.first > first }) else { return false }
    // It may have grown between our read and the new file.
    return lines.refill() || open(segment)
  }
}
