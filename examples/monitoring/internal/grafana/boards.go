package grafana

// Boards are the dashboards, by the names of their files.
func Boards() map[string]Dashboard {
	return map[string]Dashboard{
		"fleet": fleetBoard(), "server": serverBoard(), "boots": bootBoard(), "dhcp": dhcpBoard(), "bmcs": bmcBoard(),
		"git": gitBoard(), "ingot": ingotBoard(),
	}
}

func fleetBoard() Dashboard {
	return board("fleet", "Fleet", "Servers and claims: how many are where, what waits, for what, and for whom.", nil,
		number("Available", "Servers that a claim could have now.", "short", fleet("state", "ingot_servers", `state="Available"`)),
		number("In Error", "Servers that Ingot gave up until somebody acts.", "short", fleet("state", "ingot_servers", `state="Error"`)),
		number("Claims without a server", "Claims that are Unbound.", "short", fleet("phase", "ingot_claims", `phase="Unbound"`)),
		number("Unconfirmed", "Claims whose server was served what installs it and did not say that it booted.", "short", "max("+of("ingot_claims_unconfirmed")+")"),
		number("Held by the guard", "Steps that wait for an approval, or for room.", "short", "max("+of("ingot_guard_held")+")"),
		number("For the rack operator", "Servers that wait for whoever runs the rack.", "short", fleet("actor", "ingot_servers_awaiting_action", `actor="rack operator"`)),
		stacked("Servers by state", "Each server is in one state.", "short", query{fleet("state", "ingot_servers"), "{{state}}"}),
		stacked("Claims by phase", "A claim is Bound once it has a server.", "short", query{fleet("phase", "ingot_claims"), "{{phase}}"}),
		stacked("What servers wait for", "Servers that are not in their desired state, by reason. Pools and servers under way are among them.", "short",
			query{fleet("reason", "ingot_servers_waiting") + " > 0", "{{reason}}"}),
		stacked("What claims wait for", "Claims without a server, or whose server is not where it should be, by reason.", "short",
			query{fleet("phase, reason", "ingot_claims_waiting") + " > 0", "{{phase}}: {{reason}}"}),
		list("Servers that have waited longest", "How long, for what, and who has to act; ingot explain server NAME says more.", "s",
			"topk(20, time() - "+fleet("server, state, reason, actor", "ingot_server_waiting_since_timestamp_seconds")+")"),
		list("Claims that have waited longest", "How long, for what, and who has to act; ingot explain claim NAME says more.", "s",
			"topk(20, time() - "+fleet("claim, phase, reason, actor", "ingot_claim_waiting_since_timestamp_seconds")+")"),
		graph("Longest in each state", "For how long the server that has been in a state for longest has been there.", "s",
			query{"time() - min by (state) (" + of("ingot_server_state_oldest_timestamp_seconds") + ")", "{{state}}"}),
		graph("Stays in each state", "How long the middle server was in a state when it left it.", "s",
			query{quantile("0.5", "state", "ingot_server_state_duration_seconds"), "{{state}}"}),
		graph("From removal to Available", "From when the removal of a claim was seen until its server was Available again.", "s", quantiles("ingot_release_seconds")...),
		graph("From plug-in to Available", "From when a server, or its BMC's device, was seen first until it was Available.", "s", quantiles("ingot_discovery_seconds")...),
		list("Lists that the guard holds", "How long, and the token that a commit approves it by.", "s",
			"time() - "+fleet("token, scope", "ingot_guard_hold_since_timestamp_seconds")),
	)
}

func serverBoard() Dashboard {
	const one = `server="$server"`
	variables := []Variable{choice("server", "Server", `label_values(metal_server_state{job=~"$job", instance=~"$instance"}, server)`, "")}
	return board("server", "One server", "The states, power and conditions of one server.", variables,
		timeline("State", "1 while the server is in a state.", query{fleet("state", "metal_server_state", one) + " == 1", "{{state}}"}),
		timeline("Power", "1 while the BMC shows a power state.", query{fleet("power_state", "metal_server_power_state", one) + " == 1", "{{power_state}}"}),
		timeline("Conditions", "Conditions that are not as expected; with admin.serverMetrics all of them, as on the status branch.",
			query{fleet("condition_type, status", "metal_server_condition_status", one), "{{condition_type}} {{status}}"}),
		list("What it waits for", "How long, for what, and who has to act. Empty if it is where it should be, or others have waited longer.", "s",
			"time() - "+fleet("server, state, reason, actor", "ingot_server_waiting_since_timestamp_seconds", one)),
	)
}

func bootBoard() Dashboard {
	return board("boots", "Boot path", "From a commit to Booted: where the time goes, what is served, and what is refused.", nil,
		graph("From commit to each stage, middle", "From when a claim was first seen until its first boot came to a stage, of the middle claim.", "s",
			query{quantile("0.5", "stage", "ingot_claim_stage_seconds"), "{{stage}}"}),
		graph("From commit to each stage, slowest tenth", "The same of the slowest tenth.", "s",
			query{quantile("0.9", "stage", "ingot_claim_stage_seconds"), "{{stage}}"}),
		graph("Requests by route", "What machines ask the boot service for.", "reqps", query{each("route", "ingot_boot_requests_total"), "{{route}}"}),
		graph("Answers by code", "404 and 403 are machines that have nothing to boot, or may not.", "reqps", query{each("code", "ingot_boot_requests_total"), "{{code}}"}),
		graph("Time of requests", "Of images to their last byte.", "s", query{quantile("0.9", "route", "ingot_boot_request_duration_seconds"), "{{route}}"}),
		graph("Tickets refused", "By what was asked for and reason. Replay is a server that is sent on to its disk.", "short",
			query{each("what, reason", "ingot_boot_ticket_refusals_total") + " > 0", "{{what}}: {{reason}}"}),
		stacked("Image bytes by source", "Disk is the cache; registry is a fetch that is followed, or streamed past the cache.", "Bps",
			query{each("source", "ingot_boot_image_bytes_total"), "{{source}}"}),
		graph("Image cache", "What requests for blobs met.", "reqps",
			query{rate("ingot_image_cache_hits_total"), "hit"}, query{rate("ingot_image_cache_misses_total"), "miss"},
			query{rate("ingot_image_cache_joins_total"), "joined a fetch"}, query{rate("ingot_image_cache_bypasses_total"), "no room"},
			query{rate("ingot_image_cache_busy_total"), "told to come again"}),
		graph("Image cache on disk", "What blobs take, and may take.", "bytes",
			query{"sum(" + of("ingot_image_cache_size_bytes") + ")", "used"}, query{"sum(" + of("ingot_image_cache_limit_bytes") + ")", "limit"}),
		graph("Fetches from registries", "Bytes that come from registries.", "Bps", query{rate("ingot_image_cache_fetched_bytes_total"), "fetched"}),
		graph("Image references", "Resolved, by result.", "short", query{each("result", "ingot_boot_image_resolves_total") + " > 0", "{{result}}"}),
		graph("TFTP", "Requests by result. Declined is a client that only asks for a size.", "reqps", query{each("result", "ingot_tftp_requests_total") + " > 0", "{{result}}"}),
		graph("TFTP, time of a file", "Of whole files.", "s", quantiles("ingot_tftp_duration_seconds")...),
		graph("Reports of machines", "Requests to the endpoint that probes report to.", "reqps", query{each("path, code", "ingot_registry_requests_total"), "{{path}} {{code}}"}),
	)
}

func dhcpBoard() Dashboard {
	return board("dhcp", "DHCP", "Leases, pools, and what is answered and dropped.", nil,
		graph("Pools in use", "Of the addresses of each range.", "percentunit",
			query{fleet("network, subnet", "ingot_dhcp_pool_used") + " / (" + fleet("network, subnet", "ingot_dhcp_pool_size") + " > 0)", "{{network}} {{subnet}}"}),
		graph("Leases", "That have not ended.", "short", query{fleet("network, kind", "ingot_dhcp_leases"), "{{network}} {{kind}}"}),
		graph("Packets", "That were decided upon, by type and what was done.", "pps", query{each("family, type, outcome", "ingot_dhcp_packets_total"), "v{{family}} {{type}}: {{outcome}}"}),
		graph("Dropped", "Packets that were not looked into further, by reason.", "pps", query{each("network, reason", "ingot_dhcp_dropped_total"), "{{network}}: {{reason}}"}),
		graph("Boot files", "Clients that asked for one, and what they were told.", "pps", query{each("client, result", "ingot_dhcp_boot_answers_total"), "{{client}}: {{result}}"}),
		graph("Refused for want of an address", "A device that gets none waits.", "pps", query{each("network, subnet", "ingot_dhcp_pool_refused_total"), "{{network}} {{subnet}}"}),
		graph("Time to store leases", "A lease is acknowledged once it is durable.", "s", quantiles("ingot_dhcp_commit_duration_seconds")...),
		graph("Leases of a group", "How many are stored at once.", "short", quantiles("ingot_dhcp_commit_leases")...),
		graph("Groups not stored", "That the store did not take.", "short", query{rate("ingot_dhcp_commit_failures_total"), "failed"}),
		number("Store away", "1 while only renewals are answered.", "short", "max("+of("ingot_dhcp_store_away")+")"),
	)
}

func bmcBoard() Dashboard {
	return board("bmcs", "BMCs", "Which BMCs can be used, what they answer, and how fast.", nil,
		stacked("BMCs by state", "Pending is a BMC that was not read yet.", "short", query{fleet("state", "ingot_bmcs"), "{{state}}"}),
		stacked("Failing by reason", "BMCs that cannot be used.", "short", query{fleet("reason", "ingot_bmcs_failing") + " > 0", "{{reason}}"}),
		list("Failing longest", "How long, and why; bmcs/NAME.yaml of the status branch says more.", "s",
			"topk(20, time() - "+fleet("bmc, reason", "ingot_bmc_failing_since_timestamp_seconds")+")"),
		list("Read longest ago", "When the leader last read the facts of each BMC.", "s",
			"topk(20, time() - "+fleet("bmc", "ingot_bmc_last_read_timestamp_seconds")+")"),
		list("Not ready", "BMCs that cannot be used now.", "short", fleet("bmc", "ingot_bmc_ready")+" == 0"),
		graph("Requests by code", "None is no answer.", "reqps", query{each("code", "ingot_redfish_requests_total"), "{{code}}"}),
		graph("Requests by method", "GET reads; the others change something.", "reqps", query{each("method", "ingot_redfish_requests_total"), "{{method}}"}),
		graph("Time of a request", "To the last byte of the answer.", "s", quantiles("ingot_redfish_request_duration_seconds")...),
		graph("Sessions and connections opened", "Both are kept; many are a BMC that drops them.", "short",
			query{rate("ingot_redfish_sessions_opened_total"), "sessions"}, query{rate("ingot_redfish_connections_opened_total"), "connections"}),
		number("Credentials not tried", "Refused credentials that rest, so that no account is locked.", "short", "sum("+of("ingot_redfish_circuit_open")+")"),
		graph("Time of an action", "Of the slowest tenth.", "s", query{quantile("0.9", "action", "ingot_action_duration_seconds"), "{{action}}"}),
		graph("Failed actions", "By action and reason.", "short", query{each("action, reason", "ingot_action_failures_total") + " > 0", "{{action}}: {{reason}}"}),
	)
}

func gitBoard() Dashboard {
	return board("git", "Git and status", "What is in force, how far behind, and whether the status branch shows it.", nil,
		number("Behind", "For how long the newest revision that was seen is not in force.", "s", "max("+of("ingot_git_lag_seconds")+")"),
		number("In force since", "When the revision in force was taken over.", "dateTimeFromNow", "1000 * max("+of("ingot_git_revision_timestamp_seconds")+")"),
		number("Errors in manifests", "Of the newest revision that was read.", "short", "max("+of("ingot_git_problems", `severity="error"`)+")"),
		number("Unverified", "1 while the newest revision lacks a signature that counts.", "short", "max("+of("ingot_git_revision_unverified")+")"),
		number("Absent objects", "In force though Git lacks them.", "short", "max("+of("ingot_git_absent_objects")+")"),
		number("Cannot push for", "For how long the status branch cannot be pushed.", "s", "max("+of("ingot_status_unpublished_seconds")+")"),
		graph("Age of commits", "When the commit in force, and the newest that was read, were made.", "s",
			query{"time() - max(" + of("ingot_git_revision_commit_timestamp_seconds") + ")", "in force"},
			query{"time() - max(" + of("ingot_git_head_commit_timestamp_seconds") + ")", "newest"}),
		graph("Since the branch was read", "Grows while it cannot be.", "s",
			query{"time() - max by (instance) (" + of("ingot_git_fetch_last_success_timestamp_seconds") + ")", "{{instance}}"}),
		graph("Looks at the branch", "By result.", "ops", query{each("result", "ingot_git_fetch_total") + " > 0", "{{result}}"}),
		graph("Time of a look", "Fetch and decoding.", "s", quantiles("ingot_git_fetch_duration_seconds")...),
		graph("Manifests", "Files, and what is wrong in them.", "short",
			query{"max(" + of("ingot_git_manifests") + ")", "files"}, query{fleet("severity", "ingot_git_problems"), "{{severity}}s"},
			query{"max(" + of("ingot_git_unmatched") + ")", "name what is not known"}),
		graph("Decoded", "Manifests that changed, or are read for the first time.", "ops", query{rate("ingot_git_manifests_decoded_total"), "decoded"}),
		graph("From change to status branch", "From the first change to the commit that shows it.", "s", quantiles("ingot_status_lag_seconds")...),
		graph("Pushes", "By result.", "ops", query{each("result", "ingot_git_push_total") + " > 0", "{{result}}"}),
		graph("Time of a push", "Retries included.", "s", quantiles("ingot_git_push_duration_seconds")...),
		graph("Files written", "Of the status branch.", "ops", query{rate("ingot_git_status_files_total"), "files"}),
		graph("Status commits", "By result.", "ops", query{each("result", "ingot_status_commits_total"), "{{result}}"}),
		graph("Since the status branch was right", "It is not pushed while nothing changes.", "s",
			query{"time() - max(" + of("ingot_status_last_success_timestamp_seconds") + ")", "since"}),
		graph("Announced pushes", "Requests to the webhook, by result.", "ops", query{each("result", "ingot_webhook_requests_total"), "{{result}}"}),
		graph("Commit statuses", "Posted to the forge, by result.", "ops", query{each("result", "ingot_commit_status_posts_total"), "{{result}}"}),
	)
}

func ingotBoard() Dashboard {
	return board("ingot", "Ingot itself", "The process, its store, and the loop.", nil,
		list("Versions", "What runs where.", "short", fleet("instance, version, goversion", "ingot_build_info")),
		timeline("Leader", "1 while an instance leads.", query{fleet("instance", "ingot_store_leading"), "{{instance}}"}),
		timeline("Store", "1 while the store answers.", query{fleet("instance", "ingot_store_up"), "{{instance}}"}),
		number("Only observes", "1 while nothing may be done to any server.", "short", "max("+of("ingot_observe_only")+")"),
		number("Moves under way", "Of servers, and readings of BMCs.", "short", "sum("+of("ingot_moves_under_way")+")"),
		number("Since the last plan", "The loop plans at least every 2 minutes.", "s", "time() - max("+of("ingot_plan_last_success_timestamp_seconds")+")"),
		number("Since the last commit to the store", "Nothing is written while nothing changes.", "s", "time() - max("+of("ingot_store_last_success_timestamp_seconds")+")"),
		graph("Time of a plan", "Of the whole fleet.", "s", quantiles("ingot_plan_duration_seconds")...),
		graph("Parts of a plan", "The slowest tenth: to plan, to save, to begin moves.", "s", query{quantile("0.9", "part", "ingot_plan_part_duration_seconds"), "{{part}}"}),
		graph("Late plans", "By how long a plan that was due came late.", "s", quantiles("ingot_loop_lag_seconds")...),
		graph("Plans and moves", "By result.", "ops", query{each("result", "metal_server_reconciliation_total"), "{{result}}"}),
		graph("Time of a commit to the store", "With Redis the network is in it.", "s", quantiles("ingot_store_commit_seconds")...),
		graph("Values written", "By bucket.", "wps", query{each("bucket", "ingot_store_writes_total") + " > 0", "{{bucket}}"}),
		graph("Store errors", "Failed calls, losses, values that cannot be read.", "ops",
			query{rate("ingot_store_errors_total"), "failed"}, query{rate("ingot_store_lost_total"), "lost"}, query{rate("ingot_store_corrupt_values_total"), "not readable"}),
		graph("CPU", "Of the process, in processors.", "short", query{"sum by (instance) (rate(" + of("process_cpu_seconds_total") + "[$__rate_interval]))", "{{instance}}"}),
		graph("Memory", "That the process has.", "bytes", query{fleet("instance", "process_resident_memory_bytes"), "{{instance}}"}),
		graph("Goroutines", "Each boot that is served has one.", "short", query{fleet("instance", "go_goroutines"), "{{instance}}"}),
		graph("Started", "When the process was started.", "dateTimeFromNow", query{"1000 * " + fleet("instance", "process_start_time_seconds"), "{{instance}}"}),
		list("Certificates", "When the first in each file expires.", "s",
			"min by (instance, key) ("+of("ingot_certificate_expiry_timestamp_seconds")+") - time()"),
		list("Files", "How long ago the files that the configuration names changed.", "s",
			"time() - "+fleet("instance, key", "ingot_file_modified_timestamp_seconds")),
		graph("Reports refused", "By what and reason.", "ops", query{each("what, reason", "ingot_report_refusals_total") + " > 0", "{{what}}: {{reason}}"}),
		graph("Reports of strangers", "For system UUIDs that no server has.", "ops", query{rate("ingot_registry_unknown_reports_total"), "unknown"}),
	)
}
