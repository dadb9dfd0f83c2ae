{{ published('jobs') }}
