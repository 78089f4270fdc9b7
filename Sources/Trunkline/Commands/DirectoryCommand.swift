import ArgumentParser
import CommandSupport
import Configuration
import Foundation
import Store
import TrunklinePlatform

/// `trunkline directory`: callers' names and blocked callers.
struct DirectoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "directory", abstract: "Imports names and blocked numbers for apps.",
    discussion: """
      A directory belongs to a user (user:alice) or to all devices that are logged in to an account (account:work). Apps show its names
      for calls, and callers that it blocks ring no device. Its file is that of store.sqlite with .directory appended; a running gateway
      and its apps are notified of a change at once. Nodes of a cluster read it from the shared store: the node has to run,
      and import goes through its admin port.

      EXAMPLES:
        printf 'number,label,kind\\n+15550000001,Ann Example,identify\\n+15550000002,,block\\n' > contacts.csv
        trunkline directory import contacts.csv --scope user:alice --config gateway.yaml
        trunkline directory list --config gateway.yaml
        trunkline directory export --scope user:alice --config gateway.yaml > contacts.csv
      """,
    subcommands: [Import.self, Export.self, List.self, Restore.self])

  struct ScopeOption: ParsableArguments {
    @Option(help: ArgumentHelp("The directory's owner.", valueName: "user:ID or account:NAME")) var scope: String

    func validate() throws {
      guard DirectoryHandlers.isScope(scope) else { throw ValidationError("a directory is user:ID or account:NAME") }
    }
  }

  struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Replaces a directory by a CSV file, or changes the contacts that the file names.",
      discussion: """
        At most \(Store.Limits.contacts) contacts. Every line is checked before anything changes; the first wrong line is reported, and the
        command exits with 2. The order of the lines does not matter; a number may occur once.

        EXAMPLES:
          trunkline directory import contacts.csv --scope account:work --config gateway.yaml
          printf 'number,label,kind\\n+15550000002,,remove\\n' | trunkline directory import /dev/stdin --changes --scope user:alice
        """)
    @Argument(help: ArgumentHelp("CSV with the head line number,label,kind.", valueName: "file")) var file: String
    @Flag(help: "Changes the contacts that the file names and keeps the others; kind may be remove.") var changes = false
    @OptionGroup var directory: ScopeOption
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      let (list, text) = try read(keepsText: settings.cluster?.nodes != nil)
      do {
        let change =
          try settings.cluster?.nodes != nil
          ? send(text, settings)
          : DirectoryFile(path: settings.directory).write(
            list, into: directory.scope, replaces: !changes, now: WallClock.nowMilliseconds())
        Console.line(
          "\(change.entries) contacts in \(directory.scope): \(change.added) new, \(change.changed) changed, \(change.removed) removed; version \(change.version)"
        )
      } catch let code as ExitCode {
        throw code
      } catch {
        complain("\(error)\nnothing was changed")
        throw ExitCode(1)
      }
    }

    /// Writing a million contacts takes some seconds, and an earlier import must end first. Longer than the 2 min after which the
    /// gateway answers 504, so that its reason is printed.
    private static let timeoutSeconds = 150

    private func send(_ text: [UInt8], _ settings: Settings) throws -> DirectoryFile.Change {
      var client = AdminClient(
        address: settings.listen.admin, token: settings.listen.adminToken?.exposed,
        certificate: settings.listen.adminTLS?.certificate)
      client.timeout = Self.timeoutSeconds
      let path = "/v1/directory/\(directory.scope.percentEncoded)"
      let answer = try client.request(
        changes ? "POST" : "PUT", path: path, body: String(decoding: text, as: UTF8.self), type: "text/csv")
      guard answer.status == 200 else {
        complain("the gateway answered \(answer.status): \(answer.reason)")
        throw ExitCode(1)
      }
      return try JSONDecoder().decode(DirectoryFile.Change.self, from: Data(answer.bytes))
    }

    private func read(keepsText: Bool) throws -> (list: ContactList, text: [UInt8]) {
      guard let handle = FileHandle(forReadingAtPath: file) else {
        complain("cannot read \(file): \(String(cString: strerror(errno)))")
        throw ExitCode(2)
      }
      do {
        var reader = ContactReader(.csv, acceptsRemovals: changes)
        var text: [UInt8] = []
        while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
          try reader.read(data)
          if keepsText { text += data }
        }
        return (try reader.finish(), text)
      } catch {
        complain("\(file): \(error)\nnothing was changed")
        throw ExitCode(2)
      }
    }
  }

  struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints a directory as CSV, which import reads.")
    @OptionGroup var directory: ScopeOption
    @OptionGroup var source: SettingsSource

    func run() throws {
      let file = try DirectoryCommand.open(try source.load())
      var text = ContactReader.head + "\n"
      try file.forEach(in: directory.scope) { contact in
        let kind = contact.isBlocked ? "block" : "identify"
        text += "+\(contact.number),\(CSVLine.quoted(contact.label ?? "")),\(kind)\n"
        guard text.utf8.count > 1 << 16 else { return }
        Console.data(text)
        text = ""
      }
      Console.data(text)
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the directories.")
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      let isShared = settings.cluster?.nodes != nil
      for row in try DirectoryCommand.open(settings).directories() {
        var line = "\(row.name)  \(row.entries) contacts  version \(row.version)"
        if isShared, row.sharedStore != row.version {
          line += row.sharedStore == 0 ? "  (the shared store has none)" : "  (the shared store has \(row.sharedStore))"
        }
        Console.line(line)
      }
    }
  }

  struct Restore: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Writes directories that a cluster's shared store has lost, from this machine's copies.",
      discussion: """
        For a shared store that was flushed, or replaced by an empty one. Run it on the machine with the latest copies ("trunkline directory
        list" shows the versions); its running node writes the directories that are missing. It does not change one that the store has,
        nor one of which the store has an older version: import that one again.

        EXAMPLES:
          trunkline directory restore --config gateway.yaml
          trunkline directory restore --all --config gateway.yaml
        """)
    @Flag(help: "Also those in the shared store that no node can read: after a change of cluster.key_file.") var all = false
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      guard settings.cluster?.nodes != nil else {
        complain("this gateway is not part of a cluster: its directories are in its own file")
        throw ExitCode(1)
      }
      do {
        let count = try DirectoryCommand.open(settings).restore(all: all)
        Console.line("\(count) directories are being written to the shared store, unless it has them")
      } catch {
        complain("\(error)")
        throw ExitCode(1)
      }
    }
  }

  static func open(_ settings: Settings) throws -> DirectoryFile {
    do {
      return try DirectoryFile(path: settings.directory)
    } catch {
      complain("\(error)")
      throw ExitCode(1)
    }
  }
}
