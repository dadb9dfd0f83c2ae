{{ staged('jobs') }}
