import Foundation
import PhoneNumbers
import Testing

/// The same version of `phonenumbers` in Python says what each number is: `oracle.py` has the cases, and the deliberate differences.
@Suite struct OracleTests {
  /// TRUNKLINE_PYTHON, else the product's own environment.
  static let python: String? = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    let path = ProcessInfo.processInfo.environment["TRUNKLINE_PYTHON"] ?? root.appendingPathComponent(".venv/bin/python").path
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
  }()

  private struct Row {
    let region, text, kind, result: String
  }

  private func rows(_ arguments: [String]) throws -> [Row] {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: try #require(Self.python))
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("oracle.py").path
    process.arguments = [script, NumberPlan.version] + arguments
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "is the environment's phonenumbers of version \(NumberPlan.version)?")
    return String(decoding: data, as: UTF8.self).split(separator: "\n").map { line in
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      return Row(region: fields[0], text: fields[1], kind: fields[2], result: fields[3])
    }
  }

  private func differences(_ rows: [Row]) -> [String] {
    rows.compactMap { row in
      guard let plan = NumberPlan(country: row.region) else { return "\(row.region): no such region" }
      let found = Result { try DialledNumber(row.text, in: plan) }
      let (kind, result) = (try? found.get()).map { ("\($0.kind)", $0.text) } ?? ("refused", "")
      return kind == row.kind && result == row.result
        ? nil : "\(row.region) \(row.text): \(row.kind) \(row.result) by libphonenumber, \(kind) \(result) by us"
    }
  }

  @Test(.enabled(if: OracleTests.python != nil))
  func
    `every region's example numbers, from it and two others, and its short and emergency numbers are what libphonenumber says`()
    throws
  {
    let rows = try rows([])
    #expect(rows.count > 15_000 && Set(rows.map(\.region)).count > 240)
    #expect(Set(rows.map(\.kind)) == ["international", "emergency", "short", "asDialled", "refused"])
    let differences = differences(rows)
    #expect(differences.isEmpty, "\(differences.count): \(differences.prefix(20))")
  }

  @Test(.enabled(if: OracleTests.python != nil), arguments: [42, 1_164])
  func `digits by chance are what libphonenumber says`(seed: Int) throws {
    let differences = differences(try rows(["--chance", "\(seed)", "10000"]))
    #expect(differences.isEmpty, "seed \(seed), \(differences.count): \(differences.prefix(20))")
  }
}
