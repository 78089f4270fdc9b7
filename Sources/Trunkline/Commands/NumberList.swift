import CallFlow
import CallModel
import Foundation
import Store

/// The CSV of `trunkline users import` and `export`: a head line `number,user`, then a number and a user's id in each line, in
/// UTF-8. A field may be in double quotes (RFC 4180), but contains no line break.
///
///     number,user
///     +15551230001,alice
///     +15551230002,"Miller, Bob"
enum NumberList {
  static let head = "number,user"
  /// Bytes of a line; a user's id is far shorter.
  private static let lineBytes = 4_096
  private static let tooLong = "is longer than \(lineBytes) bytes"
  private static let progressInterval = 250_000

  /// The fault and its line.
  struct Fault: Error, Equatable, CustomStringConvertible {
    /// Counted from 1.
    var line: Int
    var why: String
    var description: String { "line \(line): \(why)" }
  }

  /// Reads a whole list; throws at the first wrong line.
  /// - Parameters:
  ///   - chunk: the next bytes of the file, any number; empty at the end.
  ///   - limit: the maximum of numbers.
  ///   - progress: called now and then with the count of checked numbers.
  static func read(
    limit: Int = NumberTable.limit, chunk: () throws -> Data, progress: (Int) -> Void = { _ in }
  ) throws -> NumberTable {
    var builder = NumberTable.Builder(limit: limit)
    var rest: [UInt8] = []
    var line = 0
    while true {
      let data = try chunk()
      guard !data.isEmpty else { break }
      rest.append(contentsOf: data)
      var start = 0
      while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
        line += 1
        guard end - start <= lineBytes else { throw Fault(line: line, why: tooLong) }
        try read(rest[start..<end], line, &builder)
        start = end + 1
        if builder.count > 0, builder.count % progressInterval == 0 { progress(builder.count) }
      }
      rest.removeFirst(start)
      guard rest.count <= lineBytes else { throw Fault(line: line + 1, why: tooLong) }
    }
    guard rest.isEmpty else { throw Fault(line: line + 1, why: "ends without a line break: is the file whole?") }
    guard line > 0 else { throw Fault(line: 1, why: "the file is empty; it begins with \(head)") }
    return builder.finish()
  }

  private static func read(_ bytes: ArraySlice<UInt8>, _ line: Int, _ builder: inout NumberTable.Builder) throws {
    var bytes = bytes
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    if line == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes = bytes.dropFirst(3) }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Fault(line: line, why: "is not UTF-8") }
    if line == 1 {
      guard text == head else { throw Fault(line: 1, why: "is not \(head), but \"\(text.prefix(40))\"") }
      return
    }
    guard let fields = CSVLine.fields(text) else { throw Fault(line: line, why: "a quotation mark is misplaced") }
    guard fields.count == 2 else {
      throw Fault(line: line, why: "has \(fields.count == 1 ? "one field" : "\(fields.count) fields"), not number,user")
    }
    do throws(NumberTable.Fault) {
      try builder.add(number: fields[0], user: fields[1])
    } catch {
      throw Fault(line: line, why: words(error))
    }
  }

  private static func words(_ fault: NumberTable.Fault) -> String {
    switch fault {
    // The first line is the head, every other one a number.
    case .twice(_, let first): "\(fault), first in line \(first + 2)"
    case .full:
      "\(fault): give each gateway the numbers of its own users, or let a webhook return the called user (routes.inbound[].route)"
    default: fault.description
    }
  }

  /// A line that `read` accepts, with its line break.
  static func line(_ number: String, of user: String) -> String {
    "\(number),\(CSVLine.quoted(user))\n"
  }
}
