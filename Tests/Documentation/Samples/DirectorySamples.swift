import CallDirectory
import Foundation

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
