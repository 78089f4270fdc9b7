import CMallocCount
import Foundation
import Glibc

/// Who allocates: the call stacks of one thread's allocations, by how often. Names come of the executable's own symbol table, by `nm`.
public enum AllocationSites {
  public struct Site: Codable, Sendable {
    public var calls: UInt64
    /// The innermost first; the allocator's own frames are left out.
    public var frames: [String]
  }

  /// Begins to keep the stacks of this thread.
  public static func trace(thread: Int32) { malloc_trace(thread) }

  /// Ends it.
  public static func finish() -> [Site] {
    malloc_trace(0)
    var rows = [malloc_site](repeating: malloc_site(), count: Int(MALLOC_SITES))
    let count = Int(malloc_sites(&rows, MALLOC_SITES))
    let symbols = Symbols()
    let sites = rows[..<count].map { row in
      let frames = withUnsafeBytes(of: row.frames) { bytes in
        bytes.bindMemory(to: UInt.self).prefix(Int(row.depth)).map { symbols.name(of: $0) }
      }
      return Site(calls: row.calls, frames: Array(frames.drop { isAllocator($0) }.prefix(6)))
    }
    return merged(sites)
  }

  /// Stacks that differ by return addresses only are one site.
  private static func merged(_ sites: [Site]) -> [Site] {
    Dictionary(grouping: sites, by: \.frames).map { Site(calls: $1.reduce(0) { $0 + $1.calls }, frames: $0) }
      .sorted { ($0.calls, $1.frames.first ?? "") > ($1.calls, $0.frames.first ?? "") }
  }

  private static func isAllocator(_ name: String) -> Bool {
    ["malloc", "calloc", "realloc", "swift_allocObject", "swift_slowAlloc", "swift::", "posix_memalign", "?"].contains {
      name.hasPrefix($0)
    }
  }

  private struct Symbols {
    private var starts: [UInt] = []
    private var names: [String] = []
    private var base: UInt = 0

    init() {
      base = UInt(bitPattern: own_image_base())
      let (process, output) = (Process(), Pipe())
      process.executableURL = URL(fileURLWithPath: "/usr/bin/nm")
      process.arguments = ["-n", "--defined-only", "/proc/\(getpid())/exe"]
      (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
      guard (try? process.run()) != nil else { return }
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        guard words.count == 3, "tT".contains(words[1]), let start = UInt(words[0], radix: 16) else { continue }
        starts.append(start)
        names.append(String(words[2]))
      }
    }

    func name(of address: UInt) -> String {
      var symbol: UnsafePointer<CChar>?
      guard let image = image_base(UnsafeRawPointer(bitPattern: address), &symbol) else { return "?" }
      guard UInt(bitPattern: image) == base else { return symbol.map { demangled(String(cString: $0)) } ?? "?" }
      var (low, high) = (0, starts.count)
      while low < high {
        let middle = (low + high) / 2
        if starts[middle] <= address - base { low = middle + 1 } else { high = middle }
      }
      return low > 0 ? demangled(names[low - 1]) : "?"
    }
  }

  private static func demangled(_ name: String) -> String {
    guard name.hasPrefix("$s"), let text = swiftDemangle(name, name.utf8.count, nil, nil, 0) else { return name }
    defer { free(text) }
    return String(cString: text)
  }
}

/// Of the Swift runtime.
@_silgen_name("swift_demangle") private func swiftDemangle(
  _ name: UnsafePointer<CChar>, _ length: Int, _ out: UnsafeMutablePointer<CChar>?, _ size: UnsafeMutablePointer<Int>?,
  _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?
