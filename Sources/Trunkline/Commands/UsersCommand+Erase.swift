import ArgumentParser
import CommandSupport
import Configuration
import Store
import TrunklinePlatform

extension UsersCommand {
  struct Erase: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Deletes a user's data from the store.",
      discussion: """
        The user's history and directory, devices with their push tokens, and what login tokens granted. The gateway must not run: for a running
        one use the admin API, DELETE /v1/users/ID/data. Call records and the journals stay, which the command prints.

        EXAMPLES:
          trunkline users erase alice --config gateway.yaml
          curl -X DELETE http://127.0.0.1:7060/v1/users/alice/data
        """)
    @Argument(help: "The user's id.") var user: String
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      do {
        let store = try SQLiteFile(path: settings.store)
        let erased = try DirectoryFile(path: settings.directory).erase(user: user, now: WallClock.nowMilliseconds())
        let (devices, grants) = (SQLiteDevices(store), SQLiteGrants(store))
        let known = try devices.devices(of: user)
        try devices.apply(known.map { .removed($0.key) })
        let granted = try grants.grants().contains { $0.user == user }
        try grants.apply([.removed(user: user)])
        Console.line(
          "erased of \(user): \(erased.calls) calls, \(erased.contacts) contacts, \(known.count) devices, \(granted ? 1 : 0) grants"
        )
        Console.line("not erased: \(ErasedUser.remains)")
        if settings.cluster?.nodes != nil {
          complain(
            "not erased: data of \(user) in the shared store and at other nodes, which restores it here; send this to each running node: curl -X DELETE http://ADMIN/v1/users/\(user.percentEncoded)/data"
          )
        }
      } catch {
        complain("\(error)\nwhile it runs, use its admin API: curl -X DELETE http://ADMIN/v1/users/\(user.percentEncoded)/data")
        throw ExitCode(1)
      }
    }
  }
}
