# Use Redmine by its web interface, and by its models for what needs a repository.
# Prints what does not depend on the IDs.

name = ARGV[0]
ActionController::Base.allow_forgery_protection = false
Setting.rest_api_enabled = '1'
admin = User.new(admin: true, firstname: name, lastname: 'admin', mail: "#{name}-admin@example.org", language: 'en')
admin.update!(login: "#{name}-admin", password: 'administrator')

# A browser; or a program, if it has the key of a user.
class Client
  attr_reader :session

  def initialize(name, key = nil)
    @name = name
    @headers = key ? { 'X-Redmine-API-Key' => key } : {}
    @session = ActionDispatch::Integration::Session.new(Rails.application)
    @session.host! 'localhost'
  end

  # Returns what the answer has.
  def call(method, path, params = nil, **options)
    @session.process(method, path, params: params, headers: @headers.merge(options.delete(:headers) || {}), **options)
    body = @session.response.body
    shown = path.sub(/\?.*/, '').gsub(/\b\d+\b/, 'ID').gsub(@name, 'NAME')
    puts "#{method} #{shown} #{@session.status}"
    abort body[0, 2000] if @session.status >= 422
    path =~ /\.json/ && !body.blank? ? JSON.parse(body) : body
  end

  # The same, and shows which of these texts the answer has.
  def shows(path, *texts)
    body = call(:get, path)
    puts texts.map { |text| "  #{text.gsub(@name, 'NAME').gsub(/\b\d+\b/, 'ID')}: #{body.include?(text) ? 'yes' : 'no'}" }
    body
  end
end

api = Client.new(name, admin.api_key)
web = Client.new(name)
web.call(:post, '/login', { username: "#{name}-admin", password: 'administrator' })

# people, groups, roles
users = %w[a b].map do |letter|
  api.call(:post, '/users.json', { user: {
             login: name + letter, firstname: name, lastname: letter, mail: "#{name}#{letter}@example.org",
             password: 'correct horse', language: 'en'
           } }, as: :json)['user']['id']
end
web.call(:post, "/users/#{users[0]}/email_addresses", { email_address: { address: "#{name}2@example.org" } })
group = api.call(:post, '/groups.json', { group: { name: name, user_ids: [users[1]] } }, as: :json)['group']['id']
manager = Role.givable.find_by!(name: 'Manager')
web.call(:post, '/roles', { role: { name: name, permissions: %w[view_issues edit_issues add_issue_notes save_queries] } })
role = Role.find_by!(name: name)
web.call(:post, "/groups/#{group}/users", { user_ids: [users[1]] })

# projects, with members and a group, whose roles are inherited
trackers = Tracker.order(:position).to_a
{ 'number' => ['IssueCustomField', 'int'], 'choice' => ['IssueCustomField', 'enumeration'],
  'person' => ['IssueCustomField', 'user'], 'note' => ['ProjectCustomField', 'string'] }.each do |field, (type, format)|
  web.call(:post, '/custom_fields', { type: type, custom_field: {
             name: name + field, field_format: format, is_for_all: '1', is_filter: '1', tracker_ids: trackers.map(&:id)
           } })
end
fields = CustomField.where('name LIKE ?', "#{name}%").index_by { |field| field.name.delete_prefix(name) }
red, blue = %w[red blue].map do |color|
  web.call(:post, "/custom_fields/#{fields['choice'].id}/enumerations", { custom_field_enumeration: { name: color } })
  CustomFieldEnumeration.find_by!(custom_field: fields['choice'], name: color).id
end
project = api.call(:post, '/projects.json', { project: {
                     name: name, identifier: name, tracker_ids: trackers.map(&:id),
                     enabled_module_names: %w[issue_tracking time_tracking news documents files wiki repository boards calendar gantt],
                     custom_fields: [{ id: fields['note'].id, value: 'noted' }]
                   } }, as: :json)['project']['id']
child = api.call(:post, '/projects.json', { project: {
                   name: "#{name} child", identifier: "#{name}-child", parent_id: project, inherit_members: true
                 } }, as: :json)['project']['id']
[[users[0], [manager.id]], [group, [manager.id, role.id]]].each do |principal, roles|
  api.call(:post, "/projects/#{name}/memberships.json", { membership: { user_id: principal, role_ids: roles } }, as: :json)
end
members = api.call(:get, "/projects/#{name}-child/memberships.json")['memberships']
puts "members: #{members.map { |m| [(m['user'] || m['group'])['name'].sub(name, 'NAME'), m['roles'].map { |r| r['inherited'] }] }.sort}"
version = api.call(:post, "/projects/#{name}/versions.json", { version: { name: '1.0', sharing: 'descendants' } }, as: :json)['version']['id']
category = api.call(:post, "/projects/#{name}/issue_categories.json",
                    { issue_category: { name: 'category', assigned_to_id: users[0] } }, as: :json)['issue_category']['id']
api.call(:put, "/projects/#{name}.json", { project: { default_version_id: version, default_assigned_to_id: users[0] } }, as: :json)

# a workflow, and somebody who uses it
states = IssueStatus.order(:position).to_a
web.call(:patch, '/workflows/update', { role_id: [role.id], tracker_id: [trackers[0].id],
                                        transitions: { states[0].id.to_s => { states[1].id.to_s => { always: '1' } } } })
puts "transitions: #{WorkflowTransition.where(role: role).count}"

# issues, with attachments, journals, subtasks, relations, watchers, time
def upload(api, file)
  api.call(:post, "/uploads.json?filename=#{file}", "text of #{file}", headers: { 'CONTENT_TYPE' => 'application/octet-stream' })['upload']['token']
end

issues = %w[one two three].each_with_index.map do |subject, number|
  api.call(:post, '/issues.json', { issue: {
             project_id: project, tracker_id: trackers[0].id, subject: "#{name} #{subject}", category_id: category,
             fixed_version_id: version, watcher_user_ids: users,
             custom_fields: [{ id: fields['number'].id, value: number }, { id: fields['choice'].id, value: [red, blue][number / 2] },
                             { id: fields['person'].id, value: users[1 - number / 2] }],
             uploads: [{ token: upload(api, "#{subject}.txt"), filename: "#{subject}.txt", content_type: 'text/plain' }]
           } }, as: :json)['issue']['id']
end
api.call(:put, "/issues/#{issues[1]}.json", { issue: { parent_issue_id: issues[0], notes: "see ##{issues[2]}" } }, as: :json)
api.call(:post, "/issues/#{issues[0]}/relations.json", { relation: { issue_to_id: issues[2], relation_type: 'blocks' } }, as: :json)
api.call(:delete, "/issues/#{issues[2]}/watchers/#{users[1]}.json")
api.call(:post, '/time_entries.json', { time_entry: {
           issue_id: issues[1], hours: 2.5, activity_id: TimeEntryActivity.shared.first.id, user_id: users[0]
         } }, as: :json)
theirs = Client.new(name, User.find(users[1]).api_key)
theirs.call(:put, "/issues/#{issues[1]}.json", { issue: { status_id: states[1].id, notes: 'mine', assigned_to_id: users[1] } }, as: :json)
issue = theirs.call(:get, "/issues/#{issues[1]}.json?include=journals,attachments,watchers,relations,children,allowed_statuses")['issue']
puts "status: #{issue['status']['name']}, assigned: #{issue['assigned_to']['name'].sub(name, 'NAME')}, parent: #{issue['parent']['id'] == issues[0]}"
puts "journals: #{issue['journals'].map { |journal| [journal['notes'].to_s.sub(/\d+/, 'ID'), journal['details'].map { |detail| detail['name'] }.sort] }}"
puts "watchers: #{issue['watchers'].size}, hours: #{issue['spent_hours']}, fields: #{issue['custom_fields'].to_h { |field| field.values_at('id', 'value') }.values_at(*fields.values_at('number', 'choice', 'person').map(&:id)) == ['1', red.to_s, users[1].to_s]}"
attachment = issue['attachments'][0]
puts "attachment: #{theirs.call(:get, "/attachments/download/#{attachment['id']}/#{attachment['filename']}")}"
web.shows("/issues/#{issues[1]}", "/issues/#{issues[2]}\"", 'two.txt', "#{name} one", 'red')
web.shows("/issues/#{issues[0]}", "#{name} two", "#{name} three")
web.call(:post, "/issues/bulk_update", { ids: issues[0, 2], issue: { priority_id: IssuePriority.last.id } })
web.call(:get, "/issues/context_menu?ids[]=#{issues[0]}&ids[]=#{issues[1]}")
copied = web.call(:post, "/projects/#{name}/issues", { copy_from: issues[0], issue: { tracker_id: trackers[0].id, subject: "#{name} copy" }, copy_subtasks: '1', copy_attachments: '1', link_copy: '1' })
puts "copied: #{Issue.where('subject LIKE ?', "#{name}%").count}, relations: #{IssueRelation.where(issue_from_id: issues).count}"

# queries, by each kind of column
query = web.call(:post, "/projects/#{name}/queries", { query: { name: name, visibility: '0' }, f: %w[cf_NUMBER watcher_id assigned_to_id].map { |f| f.sub('NUMBER', fields['number'].id.to_s) },
                                                      op: { "cf_#{fields['number'].id}" => '=', 'watcher_id' => '=', 'assigned_to_id' => '=' },
                                                      v: { "cf_#{fields['number'].id}" => ['1'], 'watcher_id' => [users[0].to_s], 'assigned_to_id' => [users[1].to_s] },
                                                      c: %w[id subject parent], group_by: 'assigned_to' })
query = IssueQuery.find_by!(name: name).id
puts "query: #{api.call(:get, "/issues.json?query_id=#{query}&project_id=#{project}")['total_count']}"
["issue_id=#{issues.join(',')}", "parent_id=#{issues[0]}", "cf_#{fields['choice'].id}=#{red}", "cf_#{fields['person'].id}=#{users[1]}",
 "category_id=#{category}", "fixed_version_id=#{version}", "author_id=#{admin.id}", "subproject_id=#{child}", "child_id=#{issues[1]}",
 "blocks=#{issues[2]}", "relates=*"].each do |filter|
  puts "#{filter.sub(/=.*/, '').sub(/\d+/, 'ID')}: #{api.call(:get, "/issues.json?project_id=#{project}&status_id=*&#{filter}")['total_count']}"
end
web.shows("/projects/#{name}/issues?group_by=cf_#{fields['choice'].id}&set_filter=1", "#{name} three", 'red')
web.shows("/projects/#{name}/issues.csv?c[]=id&c[]=parent&c[]=subject", issues[0].to_s, "#{name} three")
puts "PDF: #{web.call(:get, "/issues/#{issues[0]}.pdf")[0, 4]}"
web.shows('/issues/auto_complete?term=' + issues[0].to_s, "#{name} one")
web.call(:get, "/search?q=%23#{issues[0]}")
puts "search: #{web.session.response.location.to_s.sub(/\d+$/) { |id| id == issues[0].to_s ? 'ID' : 'another' }}"
puts "found: #{api.call(:get, "/projects/#{name}/search.json?q=three")['total_count']}"
['activity', "roadmap?tracker_ids[]=#{trackers[0].id}", 'issues/gantt'].each do |page|
  web.shows("/projects/#{name}/#{page}", "#{name} three")
end
web.call(:get, "/projects/#{name}/issues/calendar")
web.shows("/projects/#{name}/issues/report", "assigned_to_id=#{users[1]}", "category_id=#{category}")
web.shows("/projects/#{name}/time_entries/report?criteria[]=user&criteria[]=issue&columns=month", "#{name} two", "#{name} a")

# wiki
web.call(:put, "/projects/#{name}/wiki/Start", { content: { text: "h1. Start\n\n[[Other]] ##{issues[0]}", comments: 'first' } })
web.call(:put, "/projects/#{name}/wiki/Other", { content: { text: "h1. Other\n\nattachment:page.txt" }, wiki_page: { parent_id: WikiPage.find_by(title: 'Start', wiki: Project.find(project).wiki).id } })
api.call(:put, "/projects/#{name}/wiki/Other.json", { wiki_page: { text: "h1. Other\n\nsecond attachment:page.txt", version: 1, uploads: [{ token: upload(api, 'page.txt'), filename: 'page.txt' }] } }, as: :json)
web.call(:post, "/projects/#{name}/wiki/Other/rename", { wiki_page: { title: 'Renamed', redirect_existing_links: '1' } })
page = api.call(:get, "/projects/#{name}/wiki/Renamed.json?include=attachments")['wiki_page']
puts "page: #{[page['version'], page['parent']['title'], page['attachments'].map { |a| a['filename'] }]}"
web.shows("/projects/#{name}/wiki/Start", '/wiki/Other"', "/issues/#{issues[0]}\"")
web.call(:get, "/projects/#{name}/wiki/Other")
web.shows("/projects/#{name}/wiki/Renamed/history", 'Annotate')
web.shows("/projects/#{name}/wiki/Renamed/diff?version=2&version_from=1", 'second')

# news, boards, documents, files
news = api.call(:post, "/projects/#{name}/news.json", { news: { title: "#{name} news", description: 'new' } }, as: :json)
news = News.find_by!(title: "#{name} news").id
web.call(:post, "/news/#{news}/comments", { comment: { comments: 'a comment' } })
web.shows("/news/#{news}", 'a comment')
web.call(:post, "/projects/#{name}/boards", { board: { name: 'board', description: 'board' } })
board = Board.find_by!(project_id: project).id
web.call(:post, "/boards/#{board}/topics/new", { message: { subject: "#{name} topic", content: 'first' } })
topic = Message.find_by!(board_id: board).id
web.call(:post, "/boards/#{board}/topics/#{topic}/replies", { reply: { subject: 'RE: topic', content: 'answer' } })
web.shows("/boards/#{board}/topics/#{topic}", 'answer')
web.shows("/projects/#{name}/boards/#{board}", "#{name} topic")
puts "topic: #{Board.find(board).last_message.content}, #{Message.find(topic).last_reply.content}, #{Message.find(topic).replies_count}"
web.call(:post, "/projects/#{name}/documents", { document: { category_id: DocumentCategory.first.id, title: 'document', description: 'text' }, attachments: { '1' => { token: upload(api, 'document.txt') } } })
document = Document.find_by!(project_id: project).id
web.shows("/documents/#{document}", 'document.txt')
api.call(:post, "/projects/#{name}/files.json", { file: { token: upload(api, 'file.txt'), version_id: version, filename: 'file.txt' } }, as: :json)
web.shows("/projects/#{name}/files", 'file.txt')
web.call(:post, "/watchers/watch", { object_type: 'wiki_page', object_id: WikiPage.find_by!(title: 'Renamed', wiki: Project.find(project).wiki).id })
puts "watched: #{Watcher.where(user: admin, watchable_type: 'WikiPage').count.positive?}"

# a repository, whose revisions name issues and close one
Setting.commit_update_keywords = [{ 'keywords' => 'fixes', 'status_id' => IssueStatus.where(is_closed: true).first.id.to_s }]
repository = Repository::Git.create!(project: Project.find(project), url: '/nowhere', identifier: 'code', is_default: true)
first = Changeset.create!(repository: repository, revision: 'aaaa', scmid: 'aaaa', committer: 'b', committed_on: Time.now, commit_date: Date.today, comments: "refs ##{issues[0]}")
second = Changeset.create!(repository: repository, revision: 'bbbb', scmid: 'bbbb', committer: 'b', committed_on: Time.now, commit_date: Date.today, comments: "fixes ##{issues[2]}")
second.parents << first
Change.create!(changeset: second, action: 'M', path: '/file')
web.call(:post, "/repositories/#{repository.id}/committers", { repository_id: repository.id, committers: { '0' => ['b', users[1].to_s] } })
puts "changesets: #{[Issue.find(issues[0]).changesets.map(&:revision), Issue.find(issues[2]).changesets.map(&:revision), first.reload.children.map(&:revision), first.reload.user_id == users[1]]}"
web.call(:post, "/projects/#{name}/repository/code/revisions/bbbb/issues", { issue_id: "##{issues[1]}" }, xhr: true)
puts "related: #{second.reload.issues.count}"

# mail and imports
mail = "From: #{name}b@example.org\nTo: redmine@localhost\nSubject: Re: [#{name} - Bug ##{issues[1]}] two\nMessage-ID: <#{name}@example.org>\n\nby mail\n"
answer = MailHandler.receive(mail, { allow_override: 'all' })
puts "mail: #{answer.class} #{answer && answer.journalized_id == issues[1]}"
answer = MailHandler.receive(mail.sub(/Subject:.*/, "Subject: again\nIn-Reply-To: <#{Mailer.token_for(Issue.find(issues[0]), users[1] && User.find(users[1]))}>"), {})
puts "reply: #{answer.class} #{answer && answer.journalized_id == issues[0]}"
import = IssueImport.new(user: admin, filename: 'issues.csv')
import.set_default_settings('project_id' => project)
File.write(import.filepath, "subject,parent\n#{name} imported,##{issues[0]}\n") if import.filename = Redmine::Utils.random_hex(16)
import.settings.merge!('separator' => ',', 'wrapper' => '"', 'encoding' => 'UTF-8', 'mapping' => { 'project_id' => project.to_s, 'tracker' => "value:#{trackers[0].id}", 'subject' => '0', 'parent_issue_id' => '1' })
import.save!
import.parse_file
import.run
puts "imported: #{[import.saved_items.count, import.saved_objects.first&.parent_id == issues[0]]}"

# the rest of an account, a copy of the project, and an end
web.call(:post, '/my/page', { settings: { timelog: { days: '7' } } }, xhr: true)
web.shows('/my/page', "#{name} two")
web.shows("/users/#{users[0]}", name)
web.call(:post, "/projects/#{name}/copy", { project: { name: "#{name} again", identifier: "#{name}-again", tracker_ids: trackers.map(&:id) }, only: %w[members versions issue_categories issues wiki boards queries documents] })
again = Project.find_by!(identifier: "#{name}-again")
puts "copy: #{[again.issues.count, again.members.count, again.wiki.pages.count, again.versions.count, again.boards.count]}"
api.call(:delete, "/issues/#{issues[0]}.json")
puts "left: #{Issue.where(id: issues).count}"
api.call(:delete, "/groups/#{group}.json")
puts "inherited: #{Member.where(project_id: project, user_id: users[1]).count}"
api.call(:delete, "/projects/#{again.identifier}.json")
api.call(:delete, "/users/#{users[0]}.json")
puts "nobody: #{Issue.where(assigned_to_id: users[0]).count}, #{Issue.where(author_id: admin.id).count.positive?}"
fields.each_value { |field| web.call(:delete, "/custom_fields/#{field.id}") }
puts "values: #{CustomValue.where(custom_field_id: fields.values.map(&:id)).count}"
