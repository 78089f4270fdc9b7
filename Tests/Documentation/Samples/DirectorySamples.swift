import Foundation
import TrunklineCallDirectory
import TrunklineClient

// The code blocks about the Call Directory stand here word for word: `DocumentationTests`.

final class Directory: TrunklineCallDirectoryProvider {
  override var appGroup: String { "group.com.example" }
}

enum DirectorySamples {
  static func numbers() -> [Int64?] {
    let numbers = [
      PhoneNumber("+1 (555) 000-9999")?.value,  // 15550009999
      PhoneNumber("0049 30 1234567")?.value,  // 49301234567
      PhoneNumber("+44 (0)20 7946 0018")?.value,  // 442079460018
      PhoneNumber("020 7946 0018")?.value,  // nil: which country?
    ]
    return numbers
  }

  static func national() -> Int64? {
    let germany = NumberingPlan(callingCode: 49, trunkPrefix: "0")
    let number = PhoneNumber("030 1234567", plan: germany)?.value  // 49301234567
    return number
  }

  static func write(_ rows: [Row], _ germany: NumberingPlan) throws {
    let store = try DirectoryStore(
      folder: DirectoryFolder(appGroup: "group.com.example"), extensions: ["com.example.app.directory"])
    try store.replace(
      with: rows.compactMap { row in
        PhoneNumber(row.text, plan: germany).map { DirectoryEntry($0, label: row.name, isBlocked: row.isSpam) }
      })
  }

  static func reload(_ extensions: DirectoryExtensions) async throws {
    let failures = await extensions.reload().compactMap(\.failure)
    if failures.contains(where: { $0.nextStep == .enable }) { try await extensions.openSettings() }  // behind a button
  }

  static func apply(_ chunks: [DirectoryChunk], to store: DirectoryStore) throws -> Bool {
    do throws(DirectoryError) {
      try store.apply(chunks)
      return true
    } catch {
      guard case .baseMissing = error else { throw error }
      return false  // ask the server for the full directory
    }
  }
}

@MainActor func follow(_ phone: Phone, into store: DirectoryStore) {
  phone.followDirectory(from: store.version.map { Int(clamping: $0) }) { parts in
    do {
      try store.apply(parts.map(chunk))
    } catch {
      log("\(error)")  // baseMissing: the files are damaged; follow again from nil
    }
  }
}

func chunk(_ part: Phone.DirectoryPart) -> DirectoryChunk {
  func removals(_ numbers: [Int64]?, _ list: DirectoryList) -> [DirectoryChunk.Removal] {
    (numbers ?? []).compactMap { PhoneNumber($0) }.map { .init($0, from: list) }
  }
  let blocked = (part.block ?? []).compactMap { PhoneNumber($0) }.map { DirectoryEntry($0, isBlocked: true) }
  let named = (part.identify ?? []).compactMap { name in PhoneNumber(name.n).map { DirectoryEntry($0, label: name.l) } }
  return DirectoryChunk(
    version: UInt64(clamping: part.version), base: part.from.map { UInt64(clamping: $0) },
    removes: removals(part.unblock, .blocking) + removals(part.unidentify, .identification), adds: blocked + named)
}
