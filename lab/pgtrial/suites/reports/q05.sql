-- What do the nations of a region sell to buyers of their own nation in a year?
select n.nation, sum(l.price * (1 - l.discount)) as at_home
from regions r
join nations n on n.region_id = r.region_id
join suppliers s on s.nation_id = n.nation_id
join lines l on l.supplier_id = s.supplier_id
join purchases p on p.purchase_id = l.purchase_id
join buyers b on b.buyer_id = p.buyer_id and b.nation_id = s.nation_id
where r.region = 'Islands'
  and p.purchased_on >= date '2020-01-01'
  and p.purchased_on < date '2021-01-01'
group by n.nation
order by at_home desc, n.nation;
