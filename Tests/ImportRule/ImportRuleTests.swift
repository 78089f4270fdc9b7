import Foundation
import Testing

/// The folder tree of `Sources` is the import rule; Package.swift declares it, the compiler's dependency check enforces the declarations,
/// and these tests hold the declarations to the table.
@Suite struct ImportRuleTests {
  let tree = SourceTree()

  @Test func `every module imports only from folders above its own, and from siblings that the table names`() {
    #expect(tree.modules.count >= 24, "found only \(tree.modules.count) modules under \(tree.root)")
    for file in tree.files {
      for name in file.imports {
        if let offence = ImportRule.offence(module: file.module, folder: file.folder, imports: name, folders: tree.modules) {
          Issue.record("\(file.path): \(offence)")
        }
      }
    }
  }

  @Test func `outside packages and system modules are seen only where the table allows them`() {
    for file in tree.files {
      for name in file.imports where tree.modules[name] == nil {
        guard let rule = ImportRule.outside[name] else {
          Issue.record("\(file.path): imports \(name), which no row of ImportRule.outside names: add a row and say why")
          continue
        }
        #expect(
          rule.contains("\(file.folder)/\(file.module)") || rule.contains(file.folder) || rule.contains("*"),
          "\(file.path): imports \(name), which only \(rule.sorted().joined(separator: ", ")) may")
      }
    }
  }

  @Test func `the rule refuses what it should`() {
    let folders = tree.modules
    func offence(_ module: String, _ folder: String, _ name: String) -> String? {
      ImportRule.offence(module: module, folder: folder, imports: name, folders: folders)
    }
    #expect(offence("SIP", "Wire", "CallFlow") == "SIP (Wire) imports CallFlow (Calls): Wire is above Calls and must not know it")
    #expect(
      offence("Store", "Runtime", "Telemetry") == "Store imports its sibling Telemetry: no row of ImportRule.siblings allows it")
    #expect(offence("SRTP", "Media", "CSRTP") == "SRTP imports CSRTP: the oracle is for Tests and Bench only")
    #expect(
      offence("ClientMachines", "Client", "Platform")
        == "ClientMachines (Client) imports Platform (Platform): Client sees CLibraries, Wire and Media only")
    #expect(
      offence("AppleStandIn", "Client", "TrunklineCallDirectory")
        == "AppleStandIn (Client) imports TrunklineCallDirectory (Client): Client sees CLibraries, Wire and Media only")
    #expect(offence("TrunklineCallDirectory", "Client", "AppleStandIn") == nil)
    #expect(offence("SIP", "Wire", "Bytes") == nil)
    #expect(offence("CallFlow", "Calls", "SIP") == nil)
  }
}
